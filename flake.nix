# Builds Assay from this tree with Nix: `nix run github:assay-bench/assay -- run demo`. Version and licence are those of Cargo.toml, and
# the files of the installation those of all packages (scripts/dist/stage.sh).
{
  description = "Measures how fast, how effective and how correct a caching proxy is";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      about = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package;
      systems = [ "x86_64-linux" "aarch64-linux" ];
      forEach = make: builtins.listToAttrs (map (system: {
        name = system;
        value = make nixpkgs.legacyPackages.${system};
      }) systems);
    in
    {
      packages = forEach (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "assay";
          version = about.version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [ "--package" "assay" ];
          # `make test` and `make test-real` run them.
          doCheck = false;
          # Paths of units are those of distributions.
          postInstall = ''
            sh scripts/dist/stage.sh "$out/bin/assay" "$out/bin/assay" staged
            cp -r staged/usr/share staged/usr/lib "$out"
            substituteInPlace "$out"/lib/systemd/system/*.service --replace-fail /usr/bin/assay "$out/bin/assay"
          '';
          meta = {
            description = "Measures how fast, how effective and how correct a caching proxy is";
            homepage = about.repository;
            license = with pkgs.lib.licenses; [ mit asl20 ];
            mainProgram = "assay";
            platforms = systems;
          };
        };
      });
    };
}

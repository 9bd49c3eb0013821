# The package of the flake, evaluated with a stand-in for nixpkgs (check-recipes.sh).
{ top }:
let
  pkgs = {
    rustPlatform.buildRustPackage = package: { inherit (package) pname version cargoBuildFlags postInstall meta; };
    lib.licenses = { mit = "MIT"; asl20 = "Apache-2.0"; };
  };
  flake = import (/. + top + "/flake.nix");
  outputs = flake.outputs { self = outputs; nixpkgs.legacyPackages = { x86_64-linux = pkgs; aarch64-linux = pkgs; }; };
in
outputs.packages.x86_64-linux.default

"""An authority and a certificate (P-256) for the benchmarks, made by openssl; trusted by nothing else."""

import os
import shutil
import subprocess
import sys

from machine import PATH


class Certificates:
    """`ca`, `certificate`, `key`: files in PEM. `both`: certificate and key, as HAProxy wants them."""

    def __init__(self, directory, addresses):
        openssl = shutil.which("openssl", path=PATH) or sys.exit("certificates need openssl")
        self.directory = os.path.join(directory, "tls")
        os.mkdir(self.directory)
        os.chmod(self.directory, 0o755)
        self.ca, self.certificate, self.key, self.both = (self.path(name) for name in ("ca.pem", "cert.pem", "key.pem", "both.pem"))
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        names = ",".join(f"IP:{address}" for address in addresses)
        with open(self.path("extensions"), "w") as file:
            file.write(f"subjectAltName={names}\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n")
        self.run(openssl, "req", "-x509", *curve, "-keyout", self.path("ca.key"), "-out", self.ca, "-days", "2", "-subj", "/CN=benchmark",
                 "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
        self.run(openssl, "req", *curve, "-keyout", self.key, "-out", self.path("request"), "-subj", "/CN=origin")
        self.run(openssl, "x509", "-req", "-in", self.path("request"), "-CA", self.ca, "-CAkey", self.path("ca.key"), "-CAcreateserial",
                 "-days", "2", "-extfile", self.path("extensions"), "-out", self.certificate)
        with open(self.both, "w") as both:
            for part in (self.certificate, self.key):
                with open(part) as file:
                    both.write(file.read())

    def path(self, name):
        return os.path.join(self.directory, name)

    @staticmethod
    def run(*command):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr[-500:]}")

    @property
    def of_client(self):
        """What a role is told that speaks to a server with this certificate."""
        return {"ca": self.ca}

    @property
    def of_server(self):
        """What a role is told that has this certificate."""
        return {"certificate": self.certificate, "key": self.key}

"""A static nginx with one worker, which responds as an origin would: with the mark of each file in a header."""

import os
import shutil

from machine import PATH, SERVER, start, stop, wait_for


class Nginx:
    def __init__(self, directory, address, tls=None, http2=False):
        # Over HTTP/2 in the clear, nginx turns TCP_NODELAY off before it sends a body with sendfile: the body waits until the client has
        # acknowledged the head, which it does 40 ms later. Both sides would be measured while they wait.
        sendfile = "off" if http2 and not tls else "on"
        protocols = " ssl" * bool(tls) + " http2" * http2
        secured = f"ssl_certificate {tls.certificate}; ssl_certificate_key {tls.key}; ssl_protocols TLSv1.3;" if tls else ""
        with open(os.path.join(directory, "nginx.conf"), "w") as conf:
            conf.write(f"""
daemon off; worker_processes 1; pid nginx.pid; error_log error.log; {"user root;" if os.geteuid() == 0 else ""}
worker_rlimit_nofile 20000; events {{ worker_connections 18000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; sendfile {sendfile}; tcp_nopush on; tcp_nodelay on;
  open_file_cache max=10000; client_body_temp_path body; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  map_hash_bucket_size 256; include marks.conf;
  server {{
    listen {address[0]}:{address[1]}{protocols} backlog=4096; root html; {secured}
    add_header X-Assay $assay; add_header Cache-Control public;
  }}
}}""")
        self.process = start([shutil.which("nginx", path=PATH), "-p", directory + "/", "-c", "nginx.conf", "-e", "error.log"],
                             SERVER, directory)
        wait_for(address, self.process)

    def end(self):
        stop(self.process)

"""Other proxies as plain layer-7 forwarders: one worker, connections kept on both sides, no log; nothing stored, unless it says so."""

import os
import shutil

from machine import PATH, SERVER, start, wait_for


class Forwarder:
    """One of them, before servers that it takes in turn; `names_clients`: it adds `X-Forwarded-For`;
    `stores`: it caches what it may (nginx only); `tls`: its clients speak TLS, and `http2` over it (nginx and HAProxy only)."""

    def __init__(self, name, directory, number, servers, names_clients=False, stores=False, tls=None, http2=False):
        self.name, self.directory = name, os.path.join(directory, name)
        self.address = (f"127.66.9.{10 + number}", 8080)
        self.servers, self.names_clients, self.stores = servers, names_clients, stores
        self.tls, self.http2 = tls, http2
        os.mkdir(self.directory)
        os.chmod(self.directory, 0o755)
        self.process = start(getattr(self, name)(), SERVER, self.directory)
        wait_for(self.address, self.process)

    def file(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    @property
    def listen(self):
        return f"{self.address[0]}:{self.address[1]}"

    def nginx(self):
        named = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;" if self.names_clients else ""
        servers = "".join(f"server {host}:{port};" for host, port in self.servers)
        store = "proxy_cache_path store keys_zone=store:64m; proxy_cache store;" if self.stores else ""
        protocols = " ssl" * bool(self.tls) + " http2" * self.http2
        secured = ""
        if self.tls:
            secured = f"ssl_certificate {self.tls.certificate}; ssl_certificate_key {self.tls.key}; ssl_protocols TLSv1.3;"
        conf = self.file("nginx.conf", f"""
daemon off; worker_processes 1; pid nginx.pid; error_log error.log crit; {"user root;" if os.geteuid() == 0 else ""}
worker_rlimit_nofile 8192; events {{ worker_connections 8000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; tcp_nodelay on;
  client_body_temp_path body; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  {store}
  upstream nodes {{ {servers} keepalive 1024; keepalive_requests 1000000000; keepalive_timeout 600s; }}
  server {{
    listen {self.listen}{protocols} backlog=4096; {secured}
    location / {{
      proxy_pass http://nodes; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; {named}
    }}
  }}
}}""")
        return [shutil.which("nginx", path=PATH), "-p", self.directory + "/", "-c", conf, "-e", "error.log"]

    def haproxy(self):
        servers = "\n".join(f"  server n{n} {host}:{port} pool-max-conn 1024" for n, (host, port) in enumerate(self.servers))
        secured = f" ssl crt {self.tls.both} ssl-min-ver TLSv1.3" if self.tls else ""
        secured += f" alpn {'h2' if self.http2 else 'http/1.1'}" if self.tls else ""
        conf = self.file("haproxy.cfg", f"""
global
  nbthread 1
  maxconn 8000
defaults
  mode http
  timeout connect 10s
  timeout client 600s
  timeout server 600s
  timeout http-keep-alive 600s
  http-reuse always
  {"option forwardfor" if self.names_clients else ""}
frontend front
  bind {self.listen} backlog 4096{secured}
  default_backend nodes
backend nodes
  balance roundrobin
{servers}
""")
        return [shutil.which("haproxy", path=PATH), "-db", "-f", conf]

    def httpd(self):
        modules = "/usr/lib/apache2/modules"
        wanted = ("mpm_event", "authz_core", "unixd", "slotmem_shm", "lbmethod_byrequests", "proxy", "proxy_http", "proxy_balancer")
        # What is compiled in need not be loaded.
        loads = "\n".join(f"LoadModule {name}_module {modules}/mod_{name}.so" for name in wanted
                          if os.path.exists(f"{modules}/mod_{name}.so"))
        members = "\n".join(f"  BalancerMember http://{host}:{port} max=1100 ttl=600" for host, port in self.servers)
        conf = self.file("httpd.conf", f"""
ServerRoot {self.directory}
ServerName forwarder
PidFile httpd.pid
DefaultRuntimeDir {self.directory}
Mutex file:{self.directory} default
{loads}
{"User www-data" if os.geteuid() == 0 else ""}
{"Group www-data" if os.geteuid() == 0 else ""}
Listen {self.listen}
ListenBackLog 4096
ErrorLog error.log
LogLevel crit
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 600
Timeout 600
ServerLimit 1
StartServers 1
ThreadLimit 1200
ThreadsPerChild 1200
MaxRequestWorkers 1200
MinSpareThreads 1
MaxSpareThreads 1200
MaxConnectionsPerChild 0
<Proxy balancer://nodes>
{members}
</Proxy>
ProxyPass / balancer://nodes/
ProxyAddHeaders {"On" if self.names_clients else "Off"}
""")
        return [shutil.which("apache2", path=PATH), "-D", "FOREGROUND", "-f", conf]

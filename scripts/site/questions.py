"""The questions of the gallery: what is typed for each, and the page that it makes.

A question is a directory of files that are written first, and the lines of a shell that are run in it. Lines that begin with `@` are
run and not shown: they prepare what a reader has (a log, a site), of which the remark speaks. Lengths are those of rehearsals, so that
all questions take some eight minutes together.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Question:
    """One page of the gallery."""
    name: str
    title: str
    lead: str
    commands: list
    # The page that Assay writes: the live report.
    report: str
    files: dict = dataclasses.field(default_factory=dict)
    # What is prepared for the reader.
    remark: str = ""
    needs: tuple = ()
    needs_root: bool = False
    # Exit codes other than 0 that are a result: 96 (undecided), 99 (worse than allowed).
    codes: tuple = (96,)
    further: str = ""


PAIR = '''title = "Two caches, alone and as siblings"
workloads = ["demo"]
rehearse = "12s"
repetitions = 1
cool-down = "2s"

[[proxy]]
name = "builtin"
label = "separate"
memory = "8MB"
[[proxy.cache]]
name = "a"
[[proxy.cache]]
name = "b"

[[proxy]]
name = "builtin"
label = "siblings"
memory = "8MB"
[[proxy.cache]]
name = "a"
siblings = ["b"]
[[proxy.cache]]
name = "b"
siblings = ["a"]
'''

IMAGES = '''title = "Which proxy for images?"
workloads = ["image"]
rehearse = "12s"
repetitions = 1
cool-down = "2s"

[[proxy]]
name = "varnish"
memory = "256MB"
disk = "0"

[[proxy]]
name = "trafficserver"
memory = "256MB"

[[proxy]]
name = "squid"
memory = "256MB"

[[proxy]]
name = "nginx"
memory = "64MB"

[[proxy]]
name = "haproxy"
memory = "256MB"
disk = "0"

[[proxy]]
name = "httpd"
memory = "64MB"
'''

# A day of a small shop, as nginx writes it: pictures with a tracking parameter, pages by language, a search.
SHOP = '''import random

chance = random.Random(2026)
sizes = [min(400_000, max(400, int(chance.lognormvariate(9.2, 1.1)))) for _ in range(1_500)]
weights = [1 / rank**0.8 for rank in range(1, len(sizes) + 1)]
for number, item in enumerate(chance.choices(range(len(sizes)), weights, k=40_000)):
    second = number * 86_400 // 40_000
    client = f"10.0.{chance.randrange(16)}.{chance.randrange(1, 255)}"
    time = f"01/Jun/2026:{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02} +0000"
    query = ""
    if chance.random() < 0.35:
        query = f"?utm_source={chance.choice(['mail', 'news', 'video', 'search'])}&utm_id={chance.randrange(300)}"
    elif chance.random() < 0.2:
        query = f"?lang={chance.choice(['de', 'en', 'fr'])}"
    kind = ("jpg", "html", "css")[item % 3]
    size = sizes[item] + (len(query) if "lang" in query else 0)
    print(f'{client} - - [{time}] "GET /{kind}/{item}.{kind}{query} HTTP/1.1" 200 {size} "-" "Mozilla/5.0"')
'''

# The evaluation starts two proxies before it serves clients.
UNTIL_IT_LISTENS = ("python3 -c 'import socket, sys, time\n"
                    "for _ in range(300):\n"
                    "    if socket.socket().connect_ex((\"127.0.0.1\", int(sys.argv[1]))) == 0: sys.exit()\n"
                    "    time.sleep(0.1)\n"
                    "sys.exit(1)' $PORT")

QUESTIONS = [
    Question(
        "which-proxy", "Which proxy for images?",
        "A website serves pictures of 4.5 KB on average at 400 requests a second. Which of six proxies serves them fastest, and what "
        "does each cost?",
        ["assay lab images.toml --dir images",
         "@for cell in images/cells/*; do assay report \"$cell\" > /dev/null || exit; done"], "images/comparison.html",
        files={"images.toml": IMAGES},
        needs=("varnishd", "traffic_server", "squid", "nginx", "haproxy", "apache2"),
        further="[Compare proxies](../how-to/compare-proxies.md)"),
    Question(
        "cache-size", "How large must my cache be?",
        "No proxy is started: the requests of a workload, or those of your access log, are put to simulated caches of many sizes.",
        ["assay size site --rehearse 5m --html size.html"], "size.html",
        further="[Size a cache](../how-to/size-a-cache.md)"),
    Question(
        "vcl-change", "Did this VCL change cost hits?",
        "Somebody wants fresher pages and sets a lifetime of two seconds for everything. Both configurations get the same requests.",
        ["assay proxies show varnish > before.toml",
         "sed '/^sub vcl_backend_response {/a\\    set beresp.ttl = 2s;' before.toml > after.toml",
         "assay run demo --proxy before.toml --rehearse 12s --run-dir before",
         "assay run demo --proxy after.toml --rehearse 12s --run-dir after",
         "assay compare before=before after=after --tolerance dhr=1pt --html comparison.html"],
        "comparison.html", needs=("varnishd",), codes=(96, 99),
        further="[Guard a VCL change](../how-to/guard-a-vcl-change.md), [Guard a release](../how-to/guard-a-release.md)"),
    Question(
        "tls", "What does TLS cost?",
        "The same requests through nginx, in the clear and over TLS between clients and the proxy.",
        ["assay run demo --proxy nginx --rehearse 12s --run-dir clear",
         "assay run demo --proxy nginx --robot-tls --rehearse 12s --run-dir tls",
         "assay compare clear=clear tls=tls --html comparison.html"],
        "comparison.html", needs=("nginx",),
        further="[Test over TLS](../how-to/test-over-tls.md)"),
    Question(
        "right", "Is my cache right?",
        "What HTTP requires of caches, tried case by case on two proxies and on the built-in one.",
        ["assay conform varnish nginx builtin --report-only --html conform.html"], "conform.html",
        needs=("varnishd", "nginx"),
        further="[Is my cache right?](../how-to/check-a-cache.md), [results of six proxies](../explanation/conformance-results.md)"),
    Question(
        "key", "Which key is to blame for lost hits?",
        "A shop's access log: some links carry parameters of campaigns, which make one picture look like hundreds.",
        ["@python3 shop.py > access.log",
         "assay size access.log --suggest-keys --html size.html",
         "assay size access.log --key 'drop utm_source, utm_id'"], "size.html",
        files={"shop.py": SHOP},
        remark="The log is made by a small program, so that the page can be made again; use one of yours.",
        further="[Size a cache](../how-to/size-a-cache.md#say-what-the-log-does-not)"),
    Question(
        "limit", "How many requests can it take?",
        "A proxy with a tenth of a processor, and a search for the highest rate at which hits stay below 50 ms.",
        ["assay run demo --proxy nginx --cpu-quota 0.1 --find-peak 'p99(hit) < 50ms' --peak-step 2s --peak-warm 5s "
         "--rehearse 60s --run-dir peak"], "peak/peak.html", needs=("nginx",), needs_root=True,
        further="[Find a target's limit](../how-to/find-the-limit.md)"),
    Question(
        "users", "What did my log's users see?",
        "The access log of a proxy knows what became of every request. Here it is that of a run through Squid.",
        ["@assay run demo --proxy squid --rehearse 12s --run-dir run", "@cp run/proxy/access.log access.log",
         "assay logs access.log --html log.html"], "log.html",
        remark="`access.log` is Squid's, from a run of the demo; use one of yours.",
        needs=("squid",),
        further="[Analyse access logs](../how-to/analyse-access-logs.md)"),
    Question(
        "balancing", "Which balancing policy?",
        "Six fast servers and two slow ones, one of which fails for a while: ten policies, simulated.",
        ["assay simulate uneven --html policies.html"], "policies.html",
        further="[Try policies on a cluster](../how-to/try-policies-on-a-cluster.md)"),
    Question(
        "siblings", "Do siblings help?",
        "Two small caches share the visitors of a site: first independently of each other, then as siblings that query each other.",
        ["assay lab pair.toml --dir pair"], "pair/comparison.html",
        files={"pair.toml": PAIR},
        further="[Emulate a hierarchy of caches](../how-to/emulate-a-hierarchy.md)"),
    Question(
        "live-traffic", "How do two proxies differ on the same live traffic?",
        "Clients are served by the Collector, and every proxy gets a copy of their requests; the responses are compared.",
        ["@for n in 1 2 3 4 5 6 7 8 9; do head -c $((n * 7000)) /dev/urandom > site/$n.jpg; done",
         "@(cd site && exec python3 -m http.server --bind 127.0.0.1 $ORIGIN) & SERVER=$!",
         "@for n in 1 2 3 4 5 6 7 8 9; do echo http://127.0.0.1:$PORT/$n.jpg; done > urls",
         "assay spe --listen 127.0.0.1:$PORT --origin 127.0.0.1:$ORIGIN --proxy nginx --proxy varnish --at-once --duration 20s --dir live &",
         "@SPE=$!",
         f"@{UNTIL_IT_LISTENS}",
         "assay replay --urls urls --to 127.0.0.1:$PORT --connections 240 --per-connection 3 --rate 20",
         "@wait $SPE",
         "@kill $SERVER",
         "assay spe report live"], "live/report.html",
        files={"site/index.html": "<!doctype html><title>A site</title>\n"},
        remark="A small web server on port 8000 is the site, and a replay stands for the clients; `urls` has a line for each picture.",
        needs=("nginx", "varnishd"),
        further="[Evaluate proxies on live traffic](../how-to/evaluate-on-live-traffic.md)"),
    Question(
        "slow-link", "Does it keep up over a slow link?",
        "Clients 40 ms away, behind a path of 10 Mbit/s that loses one packet in two hundred; beside it the same without a link.",
        ["assay run demo --proxy nginx --rehearse 12s --run-dir near",
         "sudo assay run demo --proxy nginx --robot-link delay=40ms,loss=0.5%,rate=10Mbit/s --rehearse 12s --run-dir far",
         "assay compare near=near far=far --html comparison.html"],
        "comparison.html", needs=("nginx",), needs_root=True, codes=(96, 99),
        further="[Emulate a network](../how-to/emulate-a-network.md)"),
]

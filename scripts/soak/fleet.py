"""A fleet of one server and three agents, and one run on it after the other."""

import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time

import samples

URL = "nats://127.0.0.1:4222"
AGENTS = {"m1": "robots", "m2": "proxy", "m3": "origins"}
RUN_S = 12
PAUSE_S = 15
WRONG = ("wrong_version", "stale", "hit_on_reload", "wrong_object", "wrong_bytes")
# By when agents have cleaned up after a run, however it ended.
IDLE_WITHIN_S = 30


class Fleet(threading.Thread):
    def __init__(self, assay, workload, told, seed):
        super().__init__(name="fleet", daemon=True)
        self.assay, self.workload, self.told, self.chance = assay, workload, told, random.Random(seed)
        self.ended = threading.Event()
        self.agents, self.runs, self.right = {}, 0, 0
        self.digests = set()
        os.makedirs("fleet", exist_ok=True)
        with open("nats.conf", "w") as file:
            file.write(f'listen: "127.0.0.1:4222"\njetstream {{ store_dir: "{os.getcwd()}/jetstream" }}\n')
        self.serve()
        self.wait_for(lambda: self.known() is not None)
        for name, label in AGENTS.items():
            command = [assay, "agent", "--nats", URL, "--name", name, "--label", label, "--dir", f"fleet/{name}"]
            with open(f"fleet/{name}.log", "ab") as log:
                self.agents[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.wait_for(lambda: len(self.known() or []) == len(AGENTS))

    def serve(self):
        with open("fleet/nats.log", "ab") as log:
            self.server = subprocess.Popen(["nats-server", "-c", "nats.conf"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def known(self):
        listed = subprocess.run([self.assay, "fleet", "--nats", URL, "--json"], capture_output=True, text=True)
        return json.loads(listed.stdout)["agents"] if listed.returncode == 0 else None

    @staticmethod
    def wait_for(is_so):
        deadline = time.monotonic() + IDLE_WITHIN_S
        while not is_so():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def run(self):
        while not self.ended.is_set():
            self.one_run()
            self.ended.wait(PAUSE_S)

    def one_run(self):
        """One run; now and then it is killed, or its server."""
        directory = f"fleet/run-{self.runs}"
        command = [self.assay, "run", self.workload, "--fleet", URL, "--robots-on", "robots", "--proxy-on", "proxy", "--origins-on", "origins"]
        command += ["--no-live", "--no-report", "--json", "--seed", "1", "--duration", f"{RUN_S}s", "--rate", "40", "--run-dir", directory]
        self.runs += 1
        fault = self.chance.choices(["none", "coordinator", "server"], [10, 1, 1])[0]
        with open("fleet/stderr", "w+") as said:
            going = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, text=True)
            if fault != "none":
                self.ended.wait(self.chance.uniform(1, RUN_S))
                self.harm(fault, going)
            document = going.communicate()[0]
            said.seek(0)
            words = said.read()[-600:]
        problems = self.problems(fault, going.returncode, document, words)
        if not self.wait_for(self.is_clean):
            problems.append(f"agents are not idle, or have files: {self.left()}")
        self.right += not problems
        for problem in problems:
            self.told({"event": "fleet", "at": time.time(), "run": self.runs - 1, "fault": fault, "problem": problem})
        shutil.rmtree(directory, ignore_errors=True)

    def harm(self, fault, going):
        self.told({"event": f"{fault} killed", "at": time.time(), "run": self.runs - 1})
        if fault == "coordinator":
            return going.kill()
        self.server.kill()
        self.server.wait()
        time.sleep(0.5)
        self.serve()

    def problems(self, fault, code, document, words):
        if fault == "coordinator":
            return []
        allowed = {0, 96} if fault == "none" else {0, 96, 99}
        if code not in allowed:
            return [f"it ended with {code}: {words}"]
        total = json.loads(document)["total"]
        found = [f"{total['errors']['by_kind'][kind]} responses are {kind}" for kind in WRONG if total["errors"]["by_kind"].get(kind)]
        self.digests.add((total["due"], total["due_digest"]))
        return found + (["not the same requests as before"] if len(self.digests) > 1 else [])

    def left(self):
        files = {name: os.listdir(f"fleet/{name}") for name in AGENTS if os.path.isdir(f"fleet/{name}")}
        below = {name: samples.children(agent.pid) for name, agent in self.agents.items()}
        return {"files": files, "children": below}

    def is_clean(self):
        left = self.left()
        return not any([*left["files"].values(), *left["children"].values()])

    def stop(self):
        """Interrupts agents and ends the server; the exit codes of agents."""
        self.ended.set()
        self.join(120)
        for agent in self.agents.values():
            agent.send_signal(signal.SIGINT)
        codes = {name: agent.wait(60) for name, agent in self.agents.items()}
        self.server.terminate()
        self.server.wait(60)
        return codes

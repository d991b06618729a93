"""A coordinator and three sites as separate processes, with TLS, on loopback."""

import json
import os
import random
import socket
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from jigsaw_crl.federated.running import start_command

HERE = Path(__file__).parent
JIGSAW = str(Path(sys.executable).with_name("jigsaw"))
COORDINATOR, ADMIN = "localhost", "coordinator@jigsaw.local"
SITES = ("client-1", "client-2", "client-3")
# Has a certificate of the federation, but takes no part in its rounds.
OUTSIDER = "client-4"
# The largest answer that the coordinator of these tests accepts.
MOST_BYTES = 200_000
# Seconds after which a step is given up. Each takes far less, even on a busy machine.
HANG = 600


def jigsaw(*arguments):
    command = [JIGSAW, *(str(a) for a in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)


def wait_until(condition, what):
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"waited {HANG} s for: {what}")


def self_signed(folder, name, days=1):
    """A certificate that no authority signed, valid for some more days, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=400))
        .not_valid_after(now + timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    paths = folder / "client.crt", folder / "client.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    kind = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *kind))
    return paths


def free_port():
    """A port that the system gives to nobody else meanwhile: it hands out higher ones."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class Deployment:
    """The processes of a federation; `close` ends every one of them."""

    def __init__(self, root):
        self.root = root
        self.port = free_port()
        self.kits = root / "federation" / "kits"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        sites = [word for site in (*SITES, OUTSIDER) for word in ("--site", site)]
        done = jigsaw("federate", "init", root / "federation", *sites, "--port", self.port)
        assert done.returncode == 0, done.stderr
        path = self.kits / COORDINATOR / "local" / "jigsaw-coordinator.json"
        ours = {"sites": list(SITES), "most_bytes": MOST_BYTES}
        path.write_text(json.dumps({**json.loads(path.read_text()), **ours}))
        self.results = self.kits / COORDINATOR / "results"
        # Timeout in seconds of rounds in which one site never answers; the others need less.
        self.enough = 20

    def start(self, *names, hostile=False):
        """Start participants; a hostile one does not use our command, which checks its kit."""
        for name in names:
            command = [JIGSAW, "federate", "start", str(self.kits / name)]
            if hostile:
                command = start_command(self.kits / name)
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join(
                    filter(None, [str(HERE / "rogue"), os.environ.get("PYTHONPATH")])
                ),
                "JIGSAW_TEST_ROGUE": str(self.rogue(name)),
                "JIGSAW_TEST_HOLD": str(self.hold(name)),
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
                **({"JIGSAW_TEST_HOSTILE": "1"} if hostile else {}),
            }
            with self.log(name).open("ab") as log:
                self.processes[name] = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    start_new_session=True,
                )

    def log(self, name):
        return self.root / f"{name}.log"

    def rogue(self, site):
        """The file with the answer that a site gives instead of its own, while it exists."""
        return self.root / f"{site}.rogue"

    def hold(self, site):
        """The file that makes a site wait with its answer, while it exists."""
        return self.root / f"{site}.hold"

    def said(self, name):
        path = self.log(name)
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_for_sites(self, since=0):
        """Wait until every site has joined; `since` is where to start in the coordinator's log.

        The time this takes also sets the timeout of later rounds; the machine may be busier then.
        """
        began = time.monotonic()

        def joined():
            said = self.said(COORDINATOR)[since:]
            words = ("New client {}@", "Re-activate the client: {} at")
            names = (s for s in (*SITES, OUTSIDER) if s in self.processes)
            return all(any(w.format(s) in said for w in words) for s in names)

        wait_until(joined, "the sites to join")
        self.enough = max(self.enough, round(3 * (time.monotonic() - began)))

    def kill_round(self):
        """End the process of the round at the coordinator; was there one?"""
        found = False
        for child in psutil.Process(self.processes[COORDINATOR].pid).children(recursive=True):
            try:
                if "jigsaw_crl.federated.round" in child.cmdline():
                    child.kill()
                    found = True
            except psutil.NoSuchProcess:
                continue
        return found

    def wait_for_hold(self, site):
        """Wait until the site was asked and holds its answer back."""
        wait_until(lambda: self.hold(site).read_text() == "holding", f"{site} to be asked")

    def kill(self, name):
        process = self.processes.pop(name)
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        for child in children:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                continue

    def submit(self, name, **options):
        limits = {"timeout": HANG, "deadline": HANG, "patience": HANG}
        given = {**limits, **options}
        words = [
            f"--{k.replace('_', '-')}" + ("" if v is True else f"={v}") for k, v in given.items()
        ]
        command = [JIGSAW, "federate", "submit", str(self.kits / ADMIN), "--round", name, *words]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.root
        )

    def run(self, name, **options):
        process = self.submit(name, **options)
        out, err = process.communicate(timeout=HANG)
        return process.returncode, out + err

    def answers(self, round_name):
        """The sites whose answers were received so far."""
        if not (self.results / round_name / "round.json").exists():
            return set()
        found = self.standings(round_name)
        return {site for site, standing in found.items() if standing["state"] == "received"}

    def standings(self, round_name):
        text = (self.results / round_name / "round.json").read_text()
        sites: dict[str, dict[str, str]] = json.loads(text)["sites"]
        return sites

    def close(self):
        for name in list(self.processes):
            try:
                self.kill(name)
            except psutil.NoSuchProcess:
                continue

#!/usr/bin/env python3
"""A task hook plugin for Sluice that needs nothing but Python's standard library (3.9 or newer).

It shows everything that a plugin can do, each part switched on by a flag:

  --placeholder KEY=VALUE   gives every task a value that it reads as {{hooks.<hook>.KEY}}
  --reuse TASK=OUTPUTS      does not run the task: gives it these outputs (JSON) instead
  --remember FILE           keeps the outputs of tasks that succeeded, and reuses them for the same work
  --skip TASK, --fail TASK  ends the task before it starts
  --pending POINT:TASK=SECONDS   lets Pre or Post wait, by polling ("Post:train=5")
  --callback                ends such a wait by a call to Sluice instead of the next poll
  --record FILE             writes a line of JSON for each point of each task, once
  --secret-file FILE, --secret-env NAME   checks that requests are signed with this secret

Try it:

  python3 plugin.py --port 8086 --placeholder greeting=hello --record reviews.jsonl
  sluice run workflow.yaml --hooks taskhook.yaml

Three rules keep a plugin correct; the code below says where each is kept:

  1. The same uid may be asked many times: after a lost answer, a poll, a restart on either side. It must get the same
     answer, and what is done for it must be done once.
  2. A plugin that is not ready says "pending" and is asked again. It never holds the connection for long.
  3. Fields of a request that are not known are ignored, because a newer Sluice may send more of them.
"""

import argparse
import hashlib
import hmac
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from datetime import datetime, timezone
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

API_VERSION = "sluice.dev/v1alpha1"
MAX_REQUEST = 64 << 20  # bytes


class Plugin:
    """Decides. It knows nothing of HTTP: answer() takes a review's request and gives its response."""

    def __init__(self, options):
        self.options = options
        self.lock = threading.Lock()
        self.templates = {}  # by digest: with lists, Sluice sends each template once
        self.memory = {}  # outputs of earlier work, by what the work was
        self.recorded = set()  # uids that are in the record already
        self.answers = {}  # the latest answers, by uid
        if options.remember and os.path.exists(options.remember):
            with open(options.remember, encoding="utf-8") as f:
                self.memory = json.load(f)
        if options.record and os.path.exists(options.record):
            # Rule 1: a restarted plugin must not record a second time what it recorded before.
            with open(options.record, encoding="utf-8") as f:
                self.recorded = {json.loads(line)["uid"] for line in f if line.strip()}

    def answer(self, request):
        """Gives the response to a request."""
        response = {"uid": request["uid"]}  # every answer repeats the uid
        if not self.complete_template(request["task"]):
            response["template"] = "Send"  # "ask again with the template in full"
            return response

        wait = self.wait(request)
        if wait > 0:
            # Rule 2. The wait is counted from when Sluice first asked, so a restart does not begin it anew.
            response["pending"] = {"retryAfterSeconds": round(min(wait, 30), 3)}
            response["message"] = "wants %.0f more seconds" % wait
            if self.options.callback and "callback" in request:
                self.answer_later(request, wait)
                response["pending"] = {"retryAfterSeconds": 600}  # only if the callback should get lost
            return response

        return self.decide(request)

    def decide(self, request):
        """Decides once for each uid, and records it before the answer goes out: nothing goes on until it is written."""
        with self.lock:
            if request["uid"] in self.answers:
                return self.answers[request["uid"]]  # rule 1: the same answer
        response = {"uid": request["uid"], **(self.pre if request["point"] == "Pre" else self.post)(request)}
        self.record(request, response)
        with self.lock:
            self.answers[request["uid"]] = response
            while len(self.answers) > 10000:
                del self.answers[next(iter(self.answers))]  # the oldest
        return response

    # --- Pre: before the task starts -----------------------------------------------------------------------------

    def pre(self, request):
        task = request["task"]
        if matches(self.options.fail, task):
            return {"decision": "Fail", "message": "the plugin was told to let %s fail" % task["name"]}
        if matches(self.options.skip, task):
            return {"decision": "Skip", "message": "the plugin was told to skip %s" % task["name"]}

        for pattern, outputs in self.options.reuse:
            if matches([pattern], task):
                return {"decision": "Reuse", "outputs": outputs, "message": "outputs were given on the command line"}
        if self.options.remember:
            with self.lock:
                outputs = self.memory.get(work_of(request))
            if outputs is not None:
                return {"decision": "Reuse", "outputs": outputs, "message": "the same work was done before"}

        return {
            "decision": "Run",
            # Any JSON; the task and those after it read it by key.
            "placeholders": {"task": task["name"], "attempt": task["attempt"], **dict(self.options.placeholder)},
            # Handed back at Post, so that a plugin need not keep anything between the two.
            "state": {"work": work_of(request), "asked": request.get("asked")},
        }

    # --- Post: after it has ended, before anything that depends on it starts ---------------------------------------

    def post(self, request):
        result = request["result"]
        state = request.get("state") or {}
        if self.options.remember and result["phase"] == "Succeeded" and not result["reused"] and "work" in state:
            with self.lock:
                self.memory[state["work"]] = result["outputs"]
                write_whole(self.options.remember, json.dumps(self.memory, indent=1))
        return {"decision": "Done"}

    # --- the rest --------------------------------------------------------------------------------------------------

    def complete_template(self, task):
        """Puts the template in where it came by digest only; False where it is not known."""
        digest, spec = task.get("templateDigest"), task.get("templateSpec")
        if not digest:
            return True
        with self.lock:
            if spec is not None:
                self.templates[digest] = spec
            elif digest in self.templates:
                task["templateSpec"] = self.templates[digest]
            else:
                return False
        return True

    def wait(self, request):
        """Gives how many seconds this review has still to wait."""
        for point, pattern, seconds in self.options.pending:
            if point == request["point"] and matches([pattern], request["task"]):
                return parse_time(request["asked"]) + seconds - time.time()
        return 0

    def answer_later(self, request, wait):
        """Sends the answer to the callback URL when the wait is over."""

        def send():
            response = self.decide(request)
            call = urllib.request.Request(
                request["callback"]["url"],
                data=json.dumps({"apiVersion": API_VERSION, "kind": "TaskReview", "response": response}).encode(),
                headers={"Content-Type": "application/json", "Authorization": "Bearer " + request["callback"]["token"]},
            )
            try:
                urllib.request.urlopen(call, timeout=10).close()
            except urllib.error.HTTPError as e:
                e.close()
                if e.code != 409:  # 409: it was settled meanwhile, which is fine
                    log("callback for %s: HTTP %d" % (request["uid"], e.code))
            except OSError as e:
                log("callback for %s: %s" % (request["uid"], e))  # the next poll will do

        timer = threading.Timer(wait, send)
        timer.daemon = True
        timer.start()

    def record(self, request, response):
        if not self.options.record:
            return
        task = request["task"]
        line = {
            "uid": request["uid"],
            "point": request["point"],
            "workflow": request["workflow"]["name"],
            "task": task["name"],
            "path": task["path"],
            "attempt": task["attempt"],
            "decision": response["decision"],
            "time": datetime.now(timezone.utc).isoformat(),
        }
        if request["point"] == "Post":
            result = request["result"]
            line.update(phase=result["phase"], reused=result["reused"], outputs=result["outputs"])
        with self.lock:
            if request["uid"] in self.recorded:
                return  # rule 1: once
            with open(self.options.record, "a", encoding="utf-8") as f:
                f.write(json.dumps(line) + "\n")
                f.flush()
                os.fsync(f.fileno())
            self.recorded.add(request["uid"])


def work_of(request):
    """Gives a key that is equal for equal work: the same template with the same inputs."""
    task = request["task"]
    what = [task.get("template"), task.get("templateDigest"), task["inputs"].get("parameters"), task["inputs"].get("artifacts")]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def matches(patterns, task):
    """Says whether a task's name, or its template's, is one of the patterns ("train", "train-*")."""
    return any(fnmatch(task["name"], p) or fnmatch(task.get("template", ""), p) for p in patterns)


def parse_time(text):
    """Reads an RFC 3339 time, whose fraction may have more digits than Python takes."""
    text = text.replace("Z", "+00:00")
    if "." in text:
        head, tail = text.split(".", 1)
        digits = len(tail) - len(tail.lstrip("0123456789"))
        text = head + "." + (tail[:digits] + "000000")[:6] + tail[digits:]
    return datetime.fromisoformat(text).timestamp()


def write_whole(path, text):
    """Writes a file so that nobody ever sees half of it."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)


def log(text):
    print("plugin: " + text, file=sys.stderr, flush=True)


class Handler(BaseHTTPRequestHandler):
    """Speaks HTTP: reads the body, checks the signature, tells a review from a list."""

    protocol_version = "HTTP/1.1"  # connections are kept
    wbufsize = 1 << 16  # head and body leave in one piece, else each answer takes 40 ms longer

    def do_POST(self):
        # The body is always read, also where it is refused: otherwise the next request on this connection would begin in it.
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            self.close_connection = True
            return self.refuse(411, "a Content-Length is needed")
        if length > MAX_REQUEST:
            self.close_connection = True
            return self.refuse(413, "the request is too large")
        body = self.rfile.read(length)
        if self.server.secret and not self.signed(body):
            return self.refuse(401, "the request is not signed with our secret, or too old")
        try:
            message = json.loads(body)
            kind = message["kind"]
            if message["apiVersion"] != API_VERSION or kind not in ("TaskReview", "TaskReviewList"):
                raise ValueError("a TaskReview of %s is expected" % API_VERSION)
            if kind == "TaskReview":
                answer = {"response": self.server.plugin.answer(message["request"])}
            else:
                answer = {"items": self.answer_list(message)}
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            return self.refuse(400, "bad request: %s: %s" % (type(e).__name__, e))
        except Exception as e:  # whatever it is, Sluice will ask again
            log("%s: %s" % (type(e).__name__, e))
            return self.refuse(500, "%s: %s" % (type(e).__name__, e))
        self.send(200, "application/json", json.dumps({"apiVersion": API_VERSION, "kind": kind, **answer}).encode())

    def answer_list(self, message):
        """Answers the reviews of a list; templates stand once in it, apart from the items."""
        for digest, spec in (message.get("templates") or {}).items():
            self.server.plugin.templates[digest] = spec
        items = []
        for item in message["items"]:
            try:
                items.append({"response": self.server.plugin.answer(item["request"])})
            except OSError as e:  # one that cannot be answered does not spoil the others
                items.append({"failure": {"uid": item["request"]["uid"], "message": str(e)}})
        return items

    def signed(self, body):
        """Says whether the body was signed with our secret within the last five minutes."""
        timestamp = self.headers.get("Sluice-Timestamp", "")
        signature = self.headers.get("Sluice-Signature", "")
        if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > 300:
            return False
        digest = hmac.new(self.server.secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(signature, "v1=" + digest)

    def refuse(self, status, text):
        self.send(status, "text/plain; charset=utf-8", text.encode())

    def send(self, status, content_type, body):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass  # one line a request is too much


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def pair(text):
    """Reads NAME=VALUE, where VALUE is JSON or, if it is not, a text."""
    name, found, value = text.partition("=")
    if not name or not found:
        raise argparse.ArgumentTypeError("NAME=VALUE is expected, not %r" % text)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def outputs(text):
    name, value = pair(text)
    if not isinstance(value, dict) or not set(value) <= {"parameters", "artifacts", "result"}:
        raise argparse.ArgumentTypeError('TASK={"parameters": {...}, "artifacts": {...}} is expected, not %r' % text)
    return name, value


def pending(text):
    try:
        point, rest = text.split(":", 1)
        task, seconds = rest.rsplit("=", 1)
        if point not in ("Pre", "Post") or not task:
            raise ValueError
        return point, task, float(seconds)
    except ValueError:
        raise argparse.ArgumentTypeError("POINT:TASK=SECONDS is expected, such as Post:train=5, not %r" % text) from None


def main():
    p = argparse.ArgumentParser(description="A task hook plugin for Sluice.")
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=8086, help="0 takes any free one; it is printed")
    p.add_argument("--placeholder", type=pair, action="append", default=[], metavar="KEY=VALUE")
    p.add_argument("--reuse", type=outputs, action="append", default=[], metavar="TASK=OUTPUTS")
    p.add_argument("--remember", metavar="FILE")
    p.add_argument("--skip", action="append", default=[], metavar="TASK")
    p.add_argument("--fail", action="append", default=[], metavar="TASK")
    p.add_argument("--pending", type=pending, action="append", default=[], metavar="POINT:TASK=SECONDS")
    p.add_argument("--callback", action="store_true")
    p.add_argument("--record", metavar="FILE")
    p.add_argument("--secret-file", metavar="FILE")
    p.add_argument("--secret-env", metavar="NAME")
    options = p.parse_args()

    server = Server((options.host, options.port), Handler)
    server.plugin = Plugin(options)
    server.secret = b""
    if options.secret_file:
        with open(options.secret_file, "rb") as f:
            server.secret = f.read().rstrip(b"\r\n")
    elif options.secret_env:
        server.secret = os.environ[options.secret_env].encode()
    print("listening on http://%s:%d" % server.server_address[:2], flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


if __name__ == "__main__":
    main()

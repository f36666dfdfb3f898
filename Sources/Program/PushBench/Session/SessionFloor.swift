import CurlClient
import Foundation
import SessionProtocol
import Synchronization
import WakuCrypto

/// The cost of the library calls that a Session subscription or notification requires.
struct SessionFloor: Sendable {
    enum Kind: Sendable {
        case subscribe, onion, notify
    }

    let settings: BenchSettings
    let sodium: Sodium
    let library: ZeroMQLibrary
    /// The folder of the database of ``PrimitiveMeter``.
    let folder: String

    func measure(_ kind: Kind) async throws -> FloorMeasurement {
        let meter = PrimitiveMeter(folder: folder, slice: settings.slice)
        try meter.prepare()
        let primitives: [Primitive] = kind == .notify ? [.upsert100, .select, .aesSeal, .aesOpen, .sha256] : [.select, .aesSeal]
        let costs = try await meter.costs(of: primitives, cores: settings.cores)
        func known(_ primitive: Primitive) -> FloorCost { costs[primitive] ?? FloorCost() }
        var sum = FloorMeasurement()
        if kind == .notify {
            sum.add("ZeroMQ message with CURVE, 400 B", try await curveMessage(), "report, sent and received")
            sum.add(
                Primitive.select.rawValue, known(.select), times: 2, "subscription that wants it; whether it was delivered before")
            sum.add(
                Primitive.aesOpen.rawValue, known(.aesOpen), times: 2, "subscription, as it is stored; notification, on its way to gorush")
            sum.add(Primitive.sha256.rawValue, known(.sha256), "name of the delivery, by which it is made once")
            sum.add("XChaCha20-Poly1305 seal, 768 B", try await sealing(), "enc_payload")
            sum.add(Primitive.aesSeal.rawValue, known(.aesSeal), "notification, as it waits for gorush")
            sum.add(Primitive.upsert100.rawValue, known(.upsert100), times: 2, "row in the outbox; row that it is known by for a day")
            return sum
        }
        sum.add("HTTP POST and its answer", try await exchange(), "client and server")
        if kind == .onion {
            sum.add("X25519", try await sharing(), "key of the onion request")
            sum.add("XChaCha20-Poly1305 seal, 768 B", try await sealing(), times: 2, "opening of the request; answer")
        }
        sum.add("Ed25519 verify", try await verifying(), "signature")
        // This measures the library's call. The node compares the two keys without a conversion.
        sum.add("Ed25519 to X25519", try await converting(), "session_ed25519 is the key of pubkey")
        sum.add(Primitive.select.rawValue, known(.select), times: 2, "subscription of this name; number of the account's devices")
        sum.add(Primitive.aesSeal.rawValue, known(.aesSeal), "subscription, as it is stored")
        // Requests to storage servers and an index by time are not counted.
        sum.add(
            "SQLite insert with three keys, 100 a transaction", try await inserting(),
            "row on disk, found by name, account and token: 100 subscriptions share a transaction")
        return sum
    }

    /// On one core: SQLite has one writer. Other requests are processed while the disk syncs, which costs only CPU time.
    private func inserting() async throws -> FloorCost {
        let path = folder + "/subscriptions.sqlite"
        let run = try await CoreRun.measure(cores: 1, for: settings.slice) {
            let table = try BareSubscriptionTable(path: path)
            return {
                try table.insert(rowCount: 100)
                return 100
            }
        }
        return FloorCost(
            cpuMicroseconds: run.cpuMicroseconds, coreMicroseconds: run.cpuMicroseconds, writerMicroseconds: run.cpuMicroseconds)
    }

    // MARK: libsodium

    private func onAllCores(_ makeOperation: @escaping @Sendable () -> () -> Void) async throws -> FloorCost {
        let run = try await CoreRun.measure(cores: settings.cores, for: settings.slice) {
            let operation = makeOperation()
            return {
                operation()
                return 1
            }
        }
        return FloorCost(cpuMicroseconds: run.cpuMicroseconds, coreMicroseconds: run.wallMicroseconds)
    }

    private func verifying() async throws -> FloorCost {
        let key = Ed25519PrivateKey.generate()
        let text = [UInt8](repeating: 7, count: 100)
        let signature = key.signature(of: text)
        return try await onAllCores { [sodium] in { _ = sodium.isValid(signature, of: text, by: key.publicKey) } }
    }

    private func converting() async throws -> FloorCost {
        let key = Ed25519PrivateKey.generate().publicKey
        return try await onAllCores { [sodium] in { _ = sodium.x25519Key(of: key) } }
    }

    private func sharing() async throws -> FloorCost {
        let secret = SecretBytes.random(count: 32)
        let point = sodium.x25519PublicKey(of: .random(count: 32))
        return try await onAllCores { [sodium] in { _ = try? sodium.sharedSecret(secret, with: point) } }
    }

    private func sealing() async throws -> FloorCost {
        let plain = [UInt8](repeating: 7, count: 768)
        return try await onAllCores { [sodium] in
            let key = SymmetricKey.random()
            return { _ = sodium.xChaChaSeal(plain, key: key) }
        }
    }

    // MARK: Between processes

    /// The cost of as many concurrent requests as in the measurement, to a server that only answers. Includes both sides.
    private func exchange() async throws -> FloorCost {
        try await GorushLoopback.running(latency: .zero) { [settings] server in
            let (http, url) = (SessionBench.makeClient(), server.url + "/api/push")
            let count = max(200, Int(settings.slice / .microseconds(50)))
            let body = [UInt8](repeating: 120, count: 700)
            func exchange(_ count: Int) async throws {
                let numbers = WorkNumbers(count)
                try await withThrowingDiscardingTaskGroup { group in
                    for _ in 0..<SessionBench.inFlight {
                        group.addTask {
                            while numbers.take() != nil {
                                _ = try await http.send(HTTPRequest(method: "POST", url: url, body: body, timeout: .seconds(60)))
                            }
                        }
                    }
                }
            }
            try await exchange(2 * SessionBench.inFlight)
            let (cpu, start) = (Clock.process(), Clock.uptime())
            try await exchange(count)
            return cost(from: cpu, start, of: count)
        }
    }

    /// The cost of a message from a server's thread to a client's handler. Includes both sides.
    private func curveMessage() async throws -> FloorCost {
        let peers = Mutex<[OxenMQServer.Peer]>([])
        let server = try await OxenMQServer(library: library) { peer, parts in
            guard parts == [Array("HI".utf8)] else { return [] }
            peers.withLock { $0.append(peer) }
            return [[Array("HELLO".utf8)]]
        }
        guard let listener = server.listeners.first else { throw BenchError(code: .unavailable, message: "ZeroMQ does not listen") }
        let received = Atomic(0)
        let client = OxenMQClient(library: library) { _, event in
            if case .command = event { received.add(1, ordering: .relaxed) }
            return .proceed
        }
        client.connect(
            .init(rawValue: 1), to: OxenAddress(endpoint: "tcp://127.0.0.1:\(listener.port)", serverKey: listener.publicKey))
        try await SessionBench.wait("HI of a client") { peers.withLock { !$0.isEmpty } }
        guard let peer = peers.withLock({ $0.first }) else { return FloorCost() }
        let parts = [Array("notify.message".utf8), [UInt8](repeating: 7, count: 400)]
        let count = max(1000, Int(settings.slice / .microseconds(5)))
        let (cpu, start) = (Clock.process(), Clock.uptime())
        for _ in 0..<count { server.send(parts, to: peer) }
        try await SessionBench.wait("all messages received") { received.load(ordering: .relaxed) == count }
        let cost = cost(from: cpu, start, of: count)
        await client.shutDown()
        await server.shutDown()
        return cost
    }

    private func cost(from cpu: UInt64, _ start: UInt64, of count: Int) -> FloorCost {
        let cpuMicroseconds = Double(Clock.process() - cpu) / 1000 / Double(count)
        let wallMicroseconds = Double(Clock.uptime() - start) / 1000 / Double(count)
        // The threads do not fill all cores: their CPU time counts, up to the wall time of all cores.
        return FloorCost(
            cpuMicroseconds: cpuMicroseconds, coreMicroseconds: min(cpuMicroseconds, wallMicroseconds * Double(settings.cores)))
    }
}

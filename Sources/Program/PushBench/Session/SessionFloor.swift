import CurlClient
import Foundation
import SessionProtocol
import SessionStandIns
import Synchronization
import WakuCrypto
import WakuPushCommands

/// The cost of the library calls that a Session subscription or notification requires.
struct SessionFloor: Sendable {
    enum Kind: Sendable {
        case subscribe, onion, notify
    }

    let settings: BenchSettings
    let sodium: Sodium
    /// The folder of the database of ``PrimitiveMeter``.
    let folder: String

    func measure(_ kind: Kind) async throws -> FloorMeasurement {
        let meter = PrimitiveMeter(folder: folder, slice: settings.slice)
        try meter.prepare()
        let primitives: Set<Primitive> = [.select, .aesSeal, .aesOpen, .sha256, .upsert100, .insert100, .append100]
        let costs = try await meter.costs(of: primitives, cores: settings.cores)
        var sum = FloorMeasurement()
        func add(_ primitive: Primitive, times count: Double = 1, limit: Double? = nil, _ reason: String) {
            sum.add(primitive.rawValue, costs[primitive] ?? FloorCost(), times: count, limit: limit, reason)
        }
        if kind == .notify {
            sum.add("ZeroMQ message with CURVE, 400 B", try await curveMessage(), "report, sent and received")
            add(.select, times: 2, limit: 0, "subscription that wants it; whether it was delivered before")
            add(.aesOpen, limit: 0, "subscription, as it is stored")
            add(.sha256, "name of the delivery, by which it is made once")
            sum.add("XChaCha20-Poly1305 seal, 768 B", try await sealing(), "enc_payload")
            add(.aesSeal, "notification, as it waits for gorush")
            add(.upsert100, times: 2, limit: 0, "row in the outbox; row that it is known by for a day")
            add(.append100, times: 0, limit: 2, "row before the post, row after it")
            return sum
        }
        sum.add("HTTP POST and its answer", try await exchange(), "client and server")
        if kind == .onion {
            sum.add("X25519", try await sharing(), "key of the onion request")
            sum.add("XChaCha20-Poly1305 seal, 768 B", try await sealing(), times: 2, "opening of the request; answer")
        }
        // session_ed25519 is compared with pubkey without a conversion.
        sum.add("Ed25519 verify", try await verifying(), "signature")
        add(.select, times: 2, limit: 0, "subscription of this name; number of the account's devices")
        add(.aesSeal, "subscription, as it is stored")
        // Requests to storage servers and an index by time are not counted.
        add(.insert100, limit: 0, "row on disk, found by name, account and token: 100 subscriptions share a transaction")
        add(.append100, times: 0, limit: 1, "row on disk: 100 subscriptions share a sync")
        return sum
    }

    // MARK: libsodium

    private func onAllCores(_ makeOperation: @escaping @Sendable () -> () -> Void) async throws -> FloorCost {
        let run = try await CoreRun.measure(cores: settings.cores, for: settings.slice) {
            let operation = makeOperation()
            return CoreOperation {
                operation()
                return 1
            }
        }
        return FloorCost(cpuMicroseconds: run.cpuMicroseconds)
    }

    private func verifying() async throws -> FloorCost {
        let key = Ed25519PrivateKey.generate()
        let text = [UInt8](repeating: 7, count: 100)
        let signature = key.signature(of: text)
        return try await onAllCores { [sodium] in { _ = sodium.isValid(signature, of: text, by: key.publicKey) } }
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
        try await GorushStandIn.running { [settings] gorush in
            let (http, url) = (SessionBench.makeClient(), gorush + "/api/push")
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
            let cpu = Clock.process()
            try await exchange(count)
            return cost(from: cpu, of: count)
        }
    }

    /// The cost of a message from a server's thread to a client's handler. Includes both sides.
    private func curveMessage() async throws -> FloorCost {
        let peers = Mutex<[OxenMQServer.Peer]>([])
        let server = try await OxenMQServer(sodium: sodium) { peer, parts in
            guard parts == [Array("HI".utf8)] else { return [] }
            peers.withLock { $0.append(peer) }
            return [[Array("HELLO".utf8)]]
        }
        guard let listener = server.listeners.first else { throw BenchError(code: .unavailable, message: "OxenMQ does not listen") }
        let received = Atomic(0)
        let client = OxenMQClient(sodium: sodium) { _, event in
            if case .command = event { received.add(1, ordering: .relaxed) }
            return .proceed
        }
        client.connect(
            .init(rawValue: 1), to: OxenAddress(endpoint: "tcp://127.0.0.1:\(listener.port)", serverKey: listener.publicKey))
        try await SessionBench.wait("HI of a client") { peers.withLock { !$0.isEmpty } }
        guard let peer = peers.withLock({ $0.first }) else { return FloorCost() }
        let parts = [Array("notify.message".utf8), [UInt8](repeating: 7, count: 400)]
        let count = max(1000, Int(settings.slice / .microseconds(5)))
        let cpu = Clock.process()
        for _ in 0..<count { server.send(parts, to: peer) }
        try await SessionBench.wait("all messages received") { received.load(ordering: .relaxed) == count }
        let cost = cost(from: cpu, of: count)
        await client.shutDown()
        await server.shutDown()
        return cost
    }

    private func cost(from cpu: UInt64, of count: Int) -> FloorCost {
        FloorCost(cpuMicroseconds: Double(Clock.process() - cpu) / 1000 / Double(count))
    }
}

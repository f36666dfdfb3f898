import NodeAssembly
import WakuCrypto

/// Measures primitives in a temporary folder.
struct PrimitiveMeter: Sendable {
    let folder: String
    /// The duration of each measurement.
    let slice: Duration
    /// The store to measure.
    var store: StoreLocation = .dataFolder

    func measure(_ primitive: Primitive, cores: Int) async throws -> CoreRun {
        if primitive == .post { return try await PostMeter.measure(for: slice) }
        return try await CoreRun.measure(cores: primitive.isSingle ? 1 : cores, for: slice) { try operation(of: primitive) }
    }

    /// The cost of each primitive with all cores busy.
    func costs(of primitives: some Sequence<Primitive>, cores: Int) async throws -> [Primitive: FloorCost] {
        var costs: [Primitive: FloorCost] = [:]
        for primitive in primitives {
            let run = try await measure(primitive, cores: cores)
            costs[primitive] = FloorCost(cpuMicroseconds: run.cpuMicroseconds, serverMicroseconds: run.serverMicroseconds)
        }
        return costs
    }

    /// Creates the tables before several threads use them. Blocks.
    func prepare() throws {
        switch store {
        case .dataFolder: _ = try BareDatabase(path: databasePath)
        case .postgreSQL(let address): _ = try BarePostgreSQL(address, isReader: false)
        }
    }

    private var databasePath: String { folder + "/bare.sqlite" }

    private func operation(of primitive: Primitive) throws -> CoreOperation {
        guard primitive.isOfStore, case .postgreSQL(let address) = store else {
            return CoreOperation(run: try localOperation(of: primitive))
        }
        let database = try BarePostgreSQL(address, isReader: true)
        let run =
            if let rowCount = primitive.transactionRowCount {
                counted(rowCount) { try database.upsert(rowCount: rowCount) }
            } else {
                counted(100) { try database.select(rowCount: 100) }
            }
        return CoreOperation(run: run, serverTime: database.serverTime)
    }

    private func localOperation(of primitive: Primitive) throws -> () throws -> Int {
        func database() throws -> BareDatabase { try BareDatabase(path: databasePath, isReader: true) }
        if let rowCount = primitive.transactionRowCount {
            return counted(rowCount) { [database = try database()] in try database.upsert(rowCount: rowCount) }
        }
        switch primitive {
        case .insert100: return counted(100) { [database = try database()] in try database.insert(rowCount: 100) }
        case .select: return counted(100) { [database = try database()] in try database.select(rowCount: 100) }
        case .append100: return counted(100) { [log = try BareLog(path: folder + "/bare.log")] in try log.append(rowCount: 100) }
        case .protobufDecode: return counted(1, BareProtobuf().decode)
        case .protobufEncode: return counted(1, BareProtobuf().encode)
        default: return counted(1, Self.cryptography(of: primitive))
        }
    }

    private func counted(_ count: Int, _ body: @escaping () throws -> Void) -> () throws -> Int {
        {
            try body()
            return count
        }
    }

    /// This project's implementation: libcrypto has none.
    @inline(never) private static func keccak(_ bytes: [UInt8]) {
        precondition(Keccak256.hash(bytes).count == Keccak256.byteCount)
    }

    private static func cryptography(of primitive: Primitive) -> () -> Void {
        let curve = BareCurve()
        let ciphers = BareCiphers()
        let input = [UInt8](repeating: 7, count: 600)
        let head = Array(input[..<65])
        switch primitive {
        case .ecdh: return curve.ecdh
        case .recover: return curve.recover
        case .verify: return curve.verify
        case .sign: return curve.sign
        case .keyGeneration: return curve.generate
        case .eciesOpen:
            return {
                curve.parse()
                curve.ecdh()
                ciphers.finishECIES(shared: curve.shared)
            }
        case .eciesSeal:
            return {
                curve.generateAndSerialize()
                curve.ecdh()
                ciphers.finishECIES(shared: curve.shared)
            }
        case .aesOpen: return ciphers.openGCM
        case .aesSeal: return ciphers.sealGCM
        case .shake256: return ciphers.shake256
        case .sha256: return { ciphers.sha256() }
        case .keccak65: return { keccak(head) }
        case .keccak600: return { keccak(input) }
        case .hmac: return { ciphers.hmac() }
        case .p256ECDH: return BareP256().ecdh
        case .p256KeyGeneration: return BareP256().generate
        case .hkdf: return BareP256().hkdf
        case .aes128Seal: return BareP256().seal
        case .topicKey: return ciphers.topicKey
        case .protobufDecode, .protobufEncode, .select, .upsert1, .upsert10, .upsert100, .upsert1000, .insert100, .append100, .post:
            preconditionFailure("\(primitive) is not a cryptographic primitive")
        }
    }
}

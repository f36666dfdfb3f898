import NodeAssembly

/// A bare library call. The floor of a message is a sum of these.
///
/// Keccak-256 is this project's own implementation: OpenSSL 3.0 has none.
enum Primitive: String, CaseIterable, Sendable, Encodable {
    case ecdh = "ECDH, X only"
    case recover = "recover"
    case verify = "verify"
    case sign = "sign, recoverable"
    case keyGeneration = "key generation"
    case eciesOpen = "ECIES open, 600 B"
    case eciesSeal = "ECIES seal, 600 B"
    case aesOpen = "AES-256-GCM open, 600 B"
    case aesSeal = "AES-256-GCM seal, 600 B"
    case shake256 = "SHAKE256-64, 65 B"
    case sha256 = "SHA-256, 600 B"
    case keccak65 = "Keccak-256, 65 B"
    case keccak600 = "Keccak-256, 600 B"
    case hmac = "HMAC-SHA256, 600 B"
    case p256ECDH = "ECDH, P-256"
    case p256KeyGeneration = "key generation, P-256"
    case hkdf = "HKDF-SHA256"
    case aes128Seal = "AES-128-GCM seal, 1,024 B"
    case topicKey = "topic key, PBKDF2"
    case protobufDecode = "protobuf decode, a registration"
    case protobufEncode = "protobuf encode, a registration"
    case select = "SQLite select, 100 a transaction"
    case upsert1 = "SQLite upsert, 1 a transaction"
    case upsert10 = "SQLite upsert, 10 a transaction"
    case upsert100 = "SQLite upsert, 100 a transaction"
    case upsert1000 = "SQLite upsert, 1,000 a transaction"
    case insert100 = "SQLite insert with three keys, 100 a transaction"
    case append100 = "log append, 100 a sync"
    case post = "HTTP POST, 16 in flight"

    /// Rows in one durable transaction; nil if nothing is written.
    var transactionRowCount: Int? {
        switch self {
        case .upsert1: 1
        case .upsert10: 10
        case .upsert100: 100
        case .upsert1000: 1000
        default: nil
        }
    }

    /// Whether it uses one core only: a store or log has one writer, and libcurl's multi interface one thread.
    var isSingle: Bool { transactionRowCount != nil || [.insert100, .append100, .post].contains(self) }

    /// Whether it is a store operation, which can also be measured with PostgreSQL.
    var isOfStore: Bool { transactionRowCount != nil || self == .select }

    func name(on store: StoreLocation) -> String {
        isOfStore ? rawValue.replacing("SQLite", with: store.engineName) : rawValue
    }
}

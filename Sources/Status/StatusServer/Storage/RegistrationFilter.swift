package import Core
import StatusProtocol
import Storage
import WakuCrypto

/// Selects the installations that meet all conditions.
package struct RegistrationFilter: Sendable {
    /// A prefix of the key hash in hexadecimal digits.
    package var keyHashPrefix = ""
    /// A prefix of the installation id.
    package var installationPrefix: [UInt8] = []
    package var platform: Platform?
    /// true: registrations only; false: tombstones only; nil: both.
    package var isRegistered: Bool?
    package var changedBefore: Timestamp?
    package var changedSince: Timestamp?

    package init() {}

    func read(_ columns: [Column], limit: Int? = nil, offset: Int = 0) -> Read {
        var conditions: [Condition] = []
        var arguments: [Value] = []
        if !keyHashPrefix.isEmpty {
            conditions.append(.between(StatusStorage.keyHash))
            arguments += Self.range(keyHashPrefix)
        }
        if !installationPrefix.isEmpty {
            conditions.append(.hasPrefix(StatusStorage.installation))
            arguments.append(.bytes(installationPrefix))
        }
        if let platform {
            conditions.append(.equal(StatusStorage.platform))
            arguments.append(.integer(Int64(platform.rawValue)))
        }
        if let isRegistered { conditions.append(isRegistered ? .present(StatusStorage.sealed) : .absent(StatusStorage.sealed)) }
        if let changedBefore {
            conditions.append(.less(StatusStorage.changedAt))
            arguments.append(.integer(changedBefore.rawValue))
        }
        if let changedSince {
            conditions.append(.atLeast(StatusStorage.changedAt))
            arguments.append(.integer(changedSince.rawValue))
        }
        let query = Query(StatusStorage.registration, columns, where: conditions, order: [.ascending(.id)])
        return query.read(arguments, limit: limit, offset: offset)
    }

    /// The lowest and the highest hash with this prefix.
    static func range(_ prefix: String) -> [Value] {
        let digits = prefix.prefix(2 * KeyHash.byteCount)
        let fill = 2 * KeyHash.byteCount - digits.count
        return ["0", "f"].map { .bytes(bytes(hex: digits + String(repeating: $0, count: fill)) ?? []) }
    }
}

package import Core
import StatusProtocol
import Storage
import Waku
import WakuCrypto

/// Which installations are meant: all that meet every condition.
package struct RegistrationFilter: Sendable {
    /// Hexadecimal digits that the key hash begins with.
    package var keyHashPrefix = ""
    /// What the installation id begins with.
    package var installationPrefix: [UInt8] = []
    package var platform: Platform?
    /// false: tombstones.
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

    /// The first and the last hash that begin with these digits.
    static func range(_ prefix: String) -> [Value] {
        let digits = prefix.prefix(2 * KeyHash.byteCount)
        let fill = 2 * KeyHash.byteCount - digits.count
        return ["0", "f"].map { .bytes(bytes(hex: digits + String(repeating: $0, count: fill)) ?? []) }
    }
}

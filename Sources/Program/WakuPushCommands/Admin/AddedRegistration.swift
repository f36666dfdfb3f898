import Core
import Foundation
import NodeAPI
import NodeAssembly
import StatusServer
import Storage
import WakuCrypto

/// A registration with a protocol of another package.
struct AddedRegistration {
    let protocolName: String
    let registrations: any OperatedRegistrations
    let row: RegisteredOwner

    /// The protocols with such registrations.
    private static var sources: [(name: String, registrations: any OperatedRegistrations)] {
        NodeAssembly.added.compactMap { added in added.registrations.map { (added.name, $0) } }
    }

    /// Registrations that match a filter, protocol by protocol, oldest first.
    static func find(_ filter: OwnerFilter, limit: Int, offset: Int = 0, in store: any Store) throws -> [AddedRegistration] {
        var (found, skipped) = ([AddedRegistration](), offset)
        for (name, registrations) in sources where found.count < limit {
            let wanted = limit == .max ? Int.max : limit - found.count
            var rows = try store.read(registrations.rows(filter, limit: wanted, offset: skipped))
            if rows.isEmpty, skipped > 0 {
                skipped -= try store.read(registrations.rows(filter, limit: skipped, offset: 0)).count
                rows = []
            } else {
                skipped = 0
            }
            found += rows.map { AddedRegistration(protocolName: name, registrations: registrations, row: $0) }
        }
        return found
    }

    /// Decrypts registrations, protocol by protocol, until `visit` returns false.
    static func forEach(
        _ filter: OwnerFilter, in store: any Store, _ visit: (AddedRegistration, OpenedRegistration) throws -> Bool
    ) throws {
        var goesOn = true
        for (name, registrations) in sources where goesOn {
            try registrations.forEach(filter, in: store) { opened in
                goesOn = try visit(AddedRegistration(protocolName: name, registrations: registrations, row: opened.row), opened)
                return goesOn
            }
        }
    }

    /// The registration with its content; nil if it is gone.
    func opened(in store: any Store) throws -> OpenedRegistration? {
        var found: OpenedRegistration?
        try registrations.forEach(OwnerFilter(prefix: hexString(row.owner)), in: store) { opened in
            found = opened
            return false
        }
        return found
    }
}

extension OwnerFilter {
    /// The conditions of a filter for Status, except for key hash and installation.
    ///
    /// - Parameter prefix: of the owner's compressed public key, in hexadecimal digits.
    init(_ filter: RegistrationFilter, prefix: String = "") {
        self.init(prefix: prefix)
        platform = filter.platform
        isRegistered = filter.isRegistered
        changedBefore = filter.changedBefore
        changedSince = filter.changedSince
    }
}

extension RegistrationsFile.Line {
    /// A registration with a protocol of another package.
    struct Added: Codable {
        let `protocol`: String
        let owner: Data
        let version: UInt64
        let mark: Int64?
        let changedAt: Int64
        let end: Int64
        /// The device with its end; absent in a tombstone.
        let content: Data?
        /// Whether gorush has accepted a notification for it.
        let isUsed: Bool
    }
}

extension ProtocolLines {
    /// - Parameter description: a protocol of another package; nil if its devices are not in a `RegistrationTable`.
    init?(_ description: ProtocolDescription) {
        guard let registrations = description.registrations else { return nil }
        let name = description.name
        self.init(
            hasSeveralPlatforms: false,
            export: { store, filter, writer in
                try registrations.forEach(OwnerFilter(filter), in: store) { opened in
                    let row = opened.row
                    return writer.add {
                        RegistrationsFile.Line(
                            added: .init(
                                protocol: name, owner: Data(row.owner), version: row.version, mark: row.mark,
                                changedAt: row.changedAt.rawValue, end: row.end.rawValue, content: opened.content.map { Data($0) },
                                isUsed: row.isUsed))
                    }
                }
            },
            entry: { line, _ in
                guard let added = line.added, added.protocol == name else { return nil }
                let row = RegisteredOwner(
                    owner: Array(added.owner), version: added.version, mark: added.mark,
                    changedAt: Timestamp(rawValue: added.changedAt), end: Timestamp(rawValue: added.end), platform: nil,
                    isUsed: added.isUsed)
                let copy = OpenedRegistration(row, content: added.content.map { Array($0) })
                guard registrations.isValid(copy) else { return .unparsable }
                return RegistrationsFile.Entry(byteCount: copy.content?.count ?? 0) { registrations.merge(copy, by: $0) }
            })
    }
}

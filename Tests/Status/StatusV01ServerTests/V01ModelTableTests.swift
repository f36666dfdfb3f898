import Core
import StatusProtocol
import StatusRules
import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

@testable import StatusV01Server

/// `Tests/models/v01-rules.pml`: what each message, dead token and passage of time does to the record of an account, by the node's own handler on
/// a store.
@Suite struct V01ModelTableTests {
    private enum RowKind: Int, CaseIterable { case absent, registered, ended, unfounded }
    private enum Intent: Int, CaseIterable { case register, end }
    private enum Relation: Int, CaseIterable {
        case below, equal
        case sameMessage = 2
        case above

        var version: UInt64 { self == .below ? 4 : self == .above ? 6 : 5 }
    }
    private enum Holder: Int, CaseIterable {
        case free, own, taken
        case retiredByItself = 3
        case retiredByOther
    }
    private static let deleted = 4

    private let fixture: V01StoreFixture
    private let server = PrivateKey.generate().publicKey
    private let devices = [V01Account.device("a"), V01Account.device("b", token: "other", tokenType: 2)]

    init() throws {
        fixture = try V01StoreFixture()
    }

    // MARK: Cases

    private func row(of account: V01Account) throws -> Records.Row? {
        try fixture.store.read(.find(Records.rowRead(account.keyHash)) { .done(try Records.row($0)) })
    }

    private func kind(_ row: Records.Row?) -> RowKind {
        guard let row else { return .absent }
        return row.isRegistered ? .registered : row.neverRegistered ? .unfounded : .ended
    }

    /// Makes a row of this kind, of version 5.
    ///
    /// - Parameter former: an access token that a record of the account had before; nil for none.
    /// - Returns: the message that made it; nil for no row.
    private func prepare(_ kind: RowKind, of account: V01Account, former: AccessToken? = nil) async throws -> V01.Register? {
        let register = kind == .registered ? account.register(version: 5) : account.unregister(version: 5)
        if kind == .absent { return nil }
        if let former {
            var before = account
            before.accessToken = former
            try await fixture.take(before.register(version: 3), of: account)
        }
        if kind == .ended { try await fixture.take(account.register(version: 4), of: account) }
        try await fixture.take(register, of: account)
        #expect(self.kind(try row(of: account)) == kind)
        return register
    }

    private static func describe(_ error: V01.RegistrationResponse.ErrorType?) -> Int {
        switch error {
        case nil: 1
        case .versionMismatch: 2
        case .malformedMessage: 3
        default: 9
        }
    }

    // MARK: Tables

    private func isPossible(_ row: RowKind, _ intent: Intent, _ relation: Relation, _ holder: Holder, isFlawed: Bool) -> Bool {
        if row == .absent, relation != .above { return false }
        if isFlawed, intent == .end || relation == .sameMessage { return false }
        if relation == .sameMessage, (row == .registered) != (intent == .register) { return false }
        if intent == .register, holder == .own, row != .registered { return false }
        if holder == .retiredByItself, row == .absent || row == .unfounded { return false }
        return !(intent == .register && relation == .sameMessage && holder != .own)
    }

    private func messages() async throws -> [ModelTable.Entry] {
        var rival = V01Account(of: server)
        let former = rival.accessToken
        try await fixture.take(rival.register(version: 1), of: rival)
        rival.accessToken = V01Account.newToken()
        try await fixture.take(rival.register(version: 2), of: rival)
        var entries: [ModelTable.Entry] = []
        for kind in RowKind.allCases {
            for intent in Intent.allCases {
                for relation in Relation.allCases {
                    for holder in Holder.allCases {
                        for isFlawed in [false, true] {
                            let description = "\(kind), \(intent), \(relation), \(holder), \(isFlawed ? "flawed" : "sound")"
                            guard isPossible(kind, intent, relation, holder, isFlawed: isFlawed) else {
                                entries.append((ModelTable.impossible, description))
                                continue
                            }
                            let account = V01Account(of: server, devices: devices)
                            var changed = account
                            switch holder {
                            case .free: changed.accessToken = V01Account.newToken()
                            case .own: break
                            case .taken: changed.accessToken = rival.accessToken
                            case .retiredByItself: changed.accessToken = V01Account.newToken()
                            case .retiredByOther: changed.accessToken = former
                            }
                            let stored = try await prepare(
                                kind, of: account, former: holder == .retiredByItself ? changed.accessToken : nil)
                            changed.devices = isFlawed ? [V01Account.device("a", token: "")] : [devices[0]]
                            let register =
                                relation == .sameMessage
                                ? try #require(stored)
                                : intent == .register
                                    ? changed.register(version: relation.version) : account.unregister(version: relation.version)
                            entries.append(
                                (try await outcome(of: register, account, changed, version: relation.version), description))
                            #expect(try fixture.selected(by: rival.accessToken) == rival.keyHash)
                            #expect(try fixture.selected(by: former) == nil)
                        }
                    }
                }
            }
        }
        return entries
    }

    private func outcome(of register: V01.Register, _ account: V01Account, _ changed: V01Account, version: UInt64) async throws -> Int {
        let before = try row(of: account)
        let error = try await fixture.take(register, of: account)
        let after = try row(of: account)
        if before?.head == after?.head, kind(before) == kind(after) { return 10 * Self.describe(error) }
        // The model relies on this: a changed row has version and mark of the message; its token selects it, a replaced one selects nothing, and
        // the devices are those of the record.
        #expect(after?.head == V01.RecordHead(version: version, mark: V01.RegisterMark(requestID: register.requestID)))
        let isRegistered = kind(after) == .registered
        if isRegistered { #expect(try fixture.selected(by: changed.accessToken) == account.keyHash) }
        if !isRegistered || changed.accessToken != account.accessToken { #expect(try fixture.selected(by: account.accessToken) == nil) }
        let devices = isRegistered ? Set(changed.devices.map(\.installationID)) : []
        #expect(Set(try fixture.devices(of: account).keys) == devices)
        return 10 * Self.describe(error) + (after == nil ? Self.deleted : kind(after).rawValue)
    }

    /// The kind of row after a change that the node makes itself. The version stays.
    private func change(of account: V01Account, _ command: () async throws -> Void) async throws -> Int {
        let before = (row: try row(of: account), devices: try fixture.devices(of: account).count)
        try await command()
        let after = try row(of: account)
        if kind(before.row) == kind(after), try fixture.devices(of: account).count == before.devices { return 0 }
        guard let after else { return Self.deleted }
        #expect(after.head == V01.RecordHead(version: try #require(before.row).head.version, mark: nil))
        #expect(try fixture.selected(by: account.accessToken) == (after.isRegistered ? account.keyHash : nil))
        return kind(after).rawValue
    }

    private func failures() async throws -> [ModelTable.Entry] {
        let source = V01DeliverySource(fixture.store.sealer, apnsTopic: "")
        var entries: [ModelTable.Entry] = []
        for kind in RowKind.allCases {
            for isPosted in [false, true] {
                for hasTwo in [false, true] {
                    let account = V01Account(of: server, devices: Array(devices.prefix(hasTwo ? 2 : 1)))
                    var device = [InstallationID: Int64]()
                    if kind == .ended {
                        try await fixture.take(account.register(version: 4), of: account)
                        device = try fixture.devices(of: account)
                        try await fixture.take(account.unregister(version: 5), of: account)
                    } else {
                        _ = try await prepare(kind, of: account)
                        device = try fixture.devices(of: account)
                    }
                    let change = try await change(of: account) {
                        guard let id = device[InstallationID("a")] else { return }
                        try await fixture.store.commit(source.endDevice(id, version: isPosted ? 5 : 4, at: Timestamp(rawValue: 2)))
                    }
                    entries.append(
                        (change, "\(kind), posted to \(isPosted ? "its" : "another") version, \(hasTwo ? "two devices" : "one device")"))
                }
            }
        }
        return entries
    }

    private func times(_ command: @escaping (V01Account) async throws -> Void) async throws -> [ModelTable.Entry] {
        var entries: [ModelTable.Entry] = []
        for kind in RowKind.allCases {
            let account = V01Account(of: server, devices: devices)
            _ = try await prepare(kind, of: account)
            entries.append((try await change(of: account) { try await command(account) }, "\(kind)"))
        }
        return entries
    }

    private func reusesDeviceIDs() async throws -> Bool {
        let other = try V01StoreFixture()
        let (first, second) = (V01Account(of: server), V01Account(of: server))
        try await other.take(first.register(version: 1), of: first)
        let ids = Set(try other.devices(of: first).values)
        try await other.take(first.unregister(version: 2), of: first)
        try await other.take(second.register(version: 1), of: second)
        return !ids.isDisjoint(with: try other.devices(of: second).values)
    }

    @Test func rules() async throws {
        var table = ModelTable("v01-rules.pml", by: "V01ModelTableTests")
        table.define(["ABSENT", "REGISTERED", "ENDED", "UNFOUNDED", "FORGOTTEN"])
        table.define(["UNCHANGED"])
        table.define(["REGISTER", "END"])
        table.define(["BELOW", "EQUAL", "SAME_MESSAGE", "ABOVE"])
        table.define(["FREE", "OWN", "TAKEN", "RETIRED_BY_ITSELF", "RETIRED_BY_OTHER"])
        table.define(["SOUND", "FLAWED"])
        table.define(["SUCCESS", "VERSION_MISMATCH", "MALFORMED"], from: 1)
        table.add("v01Rules", try await messages())
        table.add("v01Failures", try await failures())
        let later = Timestamp(rawValue: 9)
        table.add(
            "v01Lifetime",
            try await times { account in
                _ = try await fixture.store.commit(Records.expire(account.keyHash, unchangedSince: later, at: later))
            })
        table.add(
            "v01Forgetting",
            try await times { _ in
                _ = try await fixture.store.commit(Records.unfounded.forget(at: later + .seconds(30 * 24 * 3600), limit: 10_000))
            })
        table.define("v01ReusesDeviceIDs", try await reusesDeviceIDs())
        try table.write()
    }
}

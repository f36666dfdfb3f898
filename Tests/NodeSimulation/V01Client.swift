import Core
import StatusProtocol
import TestSupport
import WakuCrypto

/// An account of version 0.1, with a record for all of its devices.
final class V01Client: Registrant, @unchecked Sendable {
    static let quietChat = V01.chatHash("quiet")
    private static let deviceLimit = 10

    let number: Int
    private let account: V01Account
    private let deviceCount: Int
    private unowned let world: World
    /// By version, from 1.
    private var records: [V01.Preferences] = []
    /// Of each version, the acknowledged versions of all accounts when it was made.
    private var floors: [[UInt64]] = []
    private var ownToken = V01Account.newToken()
    /// An access token that another account has registered, for the next record.
    var takenToken: AccessToken?

    init(number: Int, of server: PublicKey, world: World, pace: Double) {
        (self.number, self.world) = (number, world)
        account = V01Account(of: server)
        deviceCount = Int.random(in: 1...3, using: &world.generator)
        super.init(name: "account \(number)", identity: account.identity, pace: pace, topics: [V01.serverTopic(server)])
    }

    var keyHash: V01.KeyHash { account.keyHash }

    // MARK: Records

    override func encode(version: UInt64, isRegistration: Bool) -> (requestID: [UInt8], envelope: [UInt8]) {
        floors.append(world.accounts.map(\.acknowledged))
        records.append(isRegistration ? record(version) : V01.Preferences(version: version, unregister: true, accessToken: AccessToken("")))
        let register = account.register(records[Int(version) - 1])
        return (register.requestID, V01.Envelope.encode(.register, payload: register.encoded(), signedBy: identity))
    }

    private func record(_ version: UInt64) -> V01.Preferences {
        if world.chance(0.25) { ownToken = V01Account.newToken() }
        let token = takenToken ?? ownToken
        takenToken = nil
        let devices = (0..<deviceCount).filter { $0 == 0 || world.chance(0.8) }.map { index in
            V01Account.device(
                installation(index), token: "\(installation(index))-version-\(version)", tokenType: UInt32(index % 2 + 1),
                isEnabled: world.chance(0.9),
                allowed: world.chance(0.2) ? [V01.sealToken(token, from: identity, to: account.server)] : [],
                blocked: world.chance(0.3) ? [Self.quietChat] : [])
        }
        return V01.Preferences(devices: devices, version: version, accessToken: token)
    }

    private func installation(_ index: Int) -> String { "account-\(number)-device-\(index)" }

    /// The access token belongs to another account: the client chooses a new one.
    func tokenRefused() { ownToken = V01Account.newToken() }

    override func mayBeRefused(_ version: UInt64) -> Bool {
        let token = record(ofVersion: version).accessToken
        return world.accounts.contains { $0 !== self && $0.records.contains { $0.accessToken == token } }
    }

    /// Whether a server that stores this version must have stored another account's with the same access token.
    func isTaken(_ version: UInt64) -> Bool {
        let token = record(ofVersion: version).accessToken
        return zip(world.accounts, floors[Int(version) - 1]).contains { $0 !== self && $0.mustHave(token, since: $1) }
    }

    // MARK: Possible states of a server

    func record(ofVersion version: UInt64) -> V01.Preferences { records[Int(version) - 1] }

    /// The versions with this access token of which a server may have one.
    func versions(with token: AccessToken, since lowest: UInt64) -> [UInt64] {
        possible(since: lowest).compactMap(\.self).filter { record(ofVersion: $0).accessToken == token }
    }

    /// Whether each registration that a server may have has this access token.
    func mustHave(_ token: AccessToken, since lowest: UInt64) -> Bool {
        possible(since: lowest).allSatisfy { version in version.map { record(ofVersion: $0).accessToken == token } ?? false }
    }

    /// The access token of the last registration.
    var currentToken: AccessToken? { operations.last { $0.isRegistration }.map { record(ofVersion: $0.version).accessToken } }

    /// The numbers of the devices that a version admits for a chat.
    func admitted(_ chat: [UInt8], by version: UInt64) -> [Int] {
        record(ofVersion: version).devices.compactMap { device in
            guard let filters = device.filters, filters.isEnabled, !filters.blockedChatList.contains(chat) else { return nil }
            return number(of: device.installationID)
        }
    }

    /// The rows with which a query is answered, each as text.
    func rows(ofVersion version: UInt64) -> [String] {
        let record = record(ofVersion: version)
        return record.devices.filter(\.isEnabled).map { device in
            let list = device.filters?.allowedKeyList ?? []
            return Self.row(device.installationID, list.isEmpty ? record.accessToken : AccessToken(""), list)
        }
    }

    static func row(_ installation: InstallationID, _ token: AccessToken, _ list: [[UInt8]]) -> String {
        "\(installation.string) \(hexString(token.bytes)) \(list.map { hexString($0) }.joined(separator: ","))"
    }

    // MARK: Devices

    /// The number of a device of this account, unlike those of all other devices; nil for another account's.
    func number(of installation: InstallationID) -> Int? {
        let prefix = self.installation(0).dropLast()
        return installation.string.hasPrefix(prefix)
            ? Int(installation.string.dropFirst(prefix.count)).map { 1_000 + number * Self.deviceLimit + $0 } : nil
    }

    /// The version of a device's token; nil for a token of another device.
    func version(ofToken token: String, of installation: InstallationID) -> UInt64? {
        let prefix = installation.string + "-version-"
        return token.hasPrefix(prefix) ? UInt64(token.dropFirst(prefix.count)) : nil
    }
}

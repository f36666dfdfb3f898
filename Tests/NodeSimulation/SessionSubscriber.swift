import Core
import SessionProtocol
import SessionStandIns
import TestSupport
import WakuCrypto

/// A device that is subscribed for a Session account, with everything that its owner ever sent for it.
final class SessionSubscriber: Registrant, @unchecked Sendable {
    let number: Int
    let client: SessionClient
    private let service: PushService
    private let token: String
    private unowned let world: World
    /// Whether the newest operation may have come while the node's clock was wrong: then it is ordered by its arrival, and a replay of one that was
    /// signed a few minutes before may replace it.
    var wasClockWrong = false
    /// By version, from 1.
    private var records: [SessionClient.Device] = []

    init(number: Int, client: SessionClient, world: World, pace: Double) {
        (self.number, self.client, self.world) = (number, client, world)
        service = world.generator.pick([.apns, .firebase, .huawei])
        token = hexString(world.generator.bytes(32))
        // Its name in the record of posts is its number: see ``PushKey``.
        super.init(name: "device \(number)", identity: .generate(), pace: pace, topics: [])
    }

    override func encode(version: UInt64, isRegistration: Bool) -> (requestID: [UInt8], envelope: [UInt8]) {
        let device = SessionClient.Device(
            service: service, token: token, namespaces: world.generator.pick([[0], [0, 11], [-10, 0, 2]]), wantsData: world.chance(0.7))
        records.append(device)
        let time = world.wallTime.rawValue / 1_000_000_000
        return ([], isRegistration ? client.subscribeBody(for: device, at: time) : client.unsubscribeBody(for: device, at: time))
    }

    func has(token: String) -> Bool { self.token == token }

    /// The version whose key sealed a payload, searched from `first` on.
    func version(opening payload: String, since lowest: UInt64, _ sodium: Sodium) -> (version: UInt64, ReceivedNotification)? {
        for version in possible(since: lowest).compactMap(\.self).reversed() {
            let key = records[Int(version) - 1].encryptionKey
            if let notification = try? ReceivedNotification(opening: payload, key: key, sodium: sodium) { return (version, notification) }
        }
        return nil
    }

    func wants(namespace: Int16, at version: UInt64) -> Bool { records[Int(version) - 1].namespaces.contains(namespace) }
    func wantsData(at version: UInt64) -> Bool { records[Int(version) - 1].wantsData }
}

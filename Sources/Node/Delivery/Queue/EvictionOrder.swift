import Core
import Waku

/// Decides which delivery of a full queue is evicted. Each change takes constant time, or logarithmic time for the heaps.
///
///     full ──▶ strangers, while they have more than a quarter of the places; else known recipients
///                 └──▶ the recipient with most deliveries; if none has two, the first to expire
///
/// Places are counted by recipient, not by device: a device token that is registered under a thousand keys is one recipient. A recipient is known once
/// gorush has accepted a notification for it. So devices that were registered for a flood displace one another, and not devices in use.
struct EvictionOrder: Sendable {
    private struct Recipients {
        /// The deliveries, in flight or not.
        var count = 0
        var devices: Devices
        var isKnown: Bool
    }

    /// Nearly all recipients have one device, which needs no set.
    private enum Devices {
        case one(DeviceID)
        case several(Set<DeviceID>)
    }

    /// The recipients of one standing.
    private struct Level {
        /// Of all deliveries, in flight or not.
        var count = 0
        var longest = LongestRecipients()
        /// The deliveries that may be evicted, and may expire: those neither in flight nor in a half.
        var waiting = IndexedHeap<Int64, Timestamp>()
    }

    private var recipients: [PushRecipient: Recipients] = [:]
    private var strangers = Level()
    private var known = Level()

    func isKnown(_ recipient: PushRecipient) -> Bool { recipients[recipient]?.isKnown ?? false }

    private mutating func change(_ isKnown: Bool, _ body: (inout Level) -> Void) {
        if isKnown { body(&known) } else { body(&strangers) }
    }

    // MARK: Deliveries

    /// Counts a delivery.
    ///
    /// - Parameter isKnown: whether the recipient is known, if it has no delivery yet.
    mutating func joined(_ device: DeviceID, of recipient: PushRecipient, isKnown: Bool) {
        var entry = recipients[recipient] ?? Recipients(devices: .one(device), isKnown: isKnown)
        switch entry.devices {
        case .one(device): break
        case .one(let other): entry.devices = .several([other, device])
        case .several(var devices):
            recipients[recipient] = nil
            entry.devices = .one(device)
            devices.insert(device)
            entry.devices = .several(devices)
        }
        entry.count += 1
        recipients[recipient] = entry
        change(entry.isKnown) {
            $0.count += 1
            $0.longest.changed(recipient, from: entry.count - 1, to: entry.count)
        }
    }

    /// Counts a delivery that is gone.
    ///
    /// - Parameter isLast: whether its device has no other.
    mutating func left(_ device: DeviceID, of recipient: PushRecipient, isLast: Bool) {
        guard var entry = recipients.removeValue(forKey: recipient) else { return }
        entry.count -= 1
        change(entry.isKnown) {
            $0.count -= 1
            $0.longest.changed(recipient, from: entry.count + 1, to: entry.count)
        }
        guard entry.count > 0 else { return }
        if isLast, case .several(var devices) = entry.devices {
            entry.devices = .one(device)
            devices.remove(device)
            entry.devices = devices.count == 1 ? devices.first.map(Devices.one) ?? entry.devices : .several(devices)
        }
        recipients[recipient] = entry
    }

    mutating func insert(_ id: Int64, of recipient: PushRecipient, expires: Timestamp) {
        change(isKnown(recipient)) { $0.waiting.insert(id, key: expires) }
    }

    mutating func remove(_ id: Int64) {
        if !strangers.waiting.remove(id) { known.waiting.remove(id) }
    }

    /// Raises the standing of a recipient. Returns whether it has deliveries, which then move with ``moveToKnown(_:expires:)``.
    mutating func becameKnown(_ recipient: PushRecipient) -> Bool {
        guard let entry = recipients[recipient], !entry.isKnown else { return false }
        recipients[recipient]?.isKnown = true
        strangers.count -= entry.count
        known.count += entry.count
        strangers.longest.changed(recipient, from: entry.count, to: 0)
        known.longest.changed(recipient, from: 0, to: entry.count)
        return true
    }

    mutating func moveToKnown(_ id: Int64, expires: Timestamp) {
        if strangers.waiting.remove(id) { known.waiting.insert(id, key: expires) }
    }

    // MARK: Choice

    /// The first delivery to expire.
    var first: (key: Timestamp, id: Int64)? {
        guard let stranger = strangers.waiting.first, let other = known.waiting.first else {
            return strangers.waiting.first ?? known.waiting.first
        }
        return stranger.key <= other.key ? stranger : other
    }

    /// The devices of the recipient with most deliveries, one of which is evicted; empty if no recipient has two. `otherwise` is evicted then.
    func candidates(limit: Int) -> (devices: Set<DeviceID>, otherwise: Int64?) {
        let isStrangersTurn = strangers.count > limit / 4 && !strangers.waiting.isEmpty || known.waiting.isEmpty
        let level = isStrangersTurn ? strangers : known
        return (level.longest.next.map(devices) ?? [], level.waiting.first?.id)
    }

    /// The devices of a recipient.
    func devices(of recipient: PushRecipient) -> Set<DeviceID> {
        switch recipients[recipient]?.devices {
        case .one(let device): [device]
        case .several(let devices): devices
        case nil: []
        }
    }
}

/// The recipients with most deliveries.
///
/// Recipients with a single delivery are not kept: most have one, and none of them has more than the others.
private struct LongestRecipients {
    private var recipients: [Int: Set<PushRecipient>] = [:]
    private var longest = 1

    /// A recipient with most deliveries; nil if none has two.
    var next: PushRecipient? { recipients[longest]?.first }

    mutating func changed(_ recipient: PushRecipient, from former: Int, to count: Int) {
        if former > 1 {
            recipients[former]?.remove(recipient)
            if recipients[former]?.isEmpty == true { recipients[former] = nil }
        }
        if count > 1 { recipients[count, default: []].insert(recipient) }
        longest = max(longest, count)
        while longest > 1, recipients[longest] == nil { longest -= 1 }
    }
}

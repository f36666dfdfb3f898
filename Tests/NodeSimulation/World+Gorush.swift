import Cluster
import Core
import Delivery
import SessionServer
import StatusProtocol
import StatusServer
import StatusV01Server
import TestSupport
import Waku
import WakuCrypto

/// A message for a device.
struct PushKey: Hashable {
    let messageID: [UInt8]
    let device: Int
}

/// A post on its way.
struct Post {
    enum Outcome {
        case accepted
        case failed
    }

    let number: Int
    let life: Int
    let time: Int64
    let keys: [PushKey]
    let ids: [String]
    let duration: Duration
    let outcome: Outcome
    /// Places of the notifications that gorush drops although it accepts the post.
    let dropped: Set<Int>
    /// Whether its node gave up partitions during it: the device's new owner may post again.
    var isHandedOver = false
}

/// A notification of which a client knows that it is stored and not yet posted.
struct WaitingPost {
    let messageID: [UInt8]
    let time: Int64
    /// When it may have expired, with a clock that was ahead at a restart.
    let end: Int64
    /// The number of the device's operations: after another one it may be dropped.
    let operationCount: Int
}

/// gorush, and the record of the notifications that it accepted.
extension World {
    func beginPost(_ notifications: [Delivery.Notification], from node: NodeProcess) -> Post {
        postCount += 1
        let keys = notifications.compactMap(key)
        let isAccepted: Bool
        let outcome: Post.Outcome
        var duration = random(0.005...0.2)
        var dropped: Set<Int> = []
        switch gorushFault {
        case .none: (isAccepted, outcome) = (true, .accepted)
        case .down: (isAccepted, outcome) = (false, .failed)
        case .unclear:
            (isAccepted, outcome) = (chance(0.7), chance(0.5) ? .accepted : .failed)
        case .slow:
            (isAccepted, outcome) = (true, .accepted)
            duration = random(0.5...20)
        case .hanging:
            (isAccepted, outcome) = (chance(0.5), .failed)
            duration = .seconds(60)
        case .full:
            (isAccepted, outcome) = (true, .accepted)
            for place in keys.indices where chance(0.4) { dropped.insert(place) }
        }
        let post = Post(
            number: postCount, life: node.life, time: scheduler.now, keys: keys, ids: notifications.map(\.id), duration: duration,
            outcome: outcome, dropped: dropped)
        let origin = nodes.count > 1 ? " by \(node.name)" : ""
        let list = keys.map { "\(hexString($0.messageID.prefix(4))) device \($0.device)" }.joined(separator: ", ")
        note("post \(post.number)\(origin): \(list)")
        for key in keys { checkOrder(key, in: post) }
        inFlight[post.number] = post
        if mayRepeat(for: node) { for key in keys { excused[key, default: 0] += 1 } }
        counts.posts += keys.count
        let accepts = isAccepted || outcome == .accepted
        scheduler.after(duration * 0.5) { [self] in
            for (place, key) in keys.enumerated() where accepts && !dropped.contains(place) { accept(key) }
            // The node does not learn whether it was accepted.
            if accepts, outcome == .failed { for key in keys { excused[key, default: 0] += 1 } }
        }
        return post
    }

    /// - Parameter isAnswered: false when the node gave the post up before the answer.
    func endPost(_ post: Post, isAnswered: Bool) -> PostResult {
        inFlight[post.number] = nil
        let outcome = isAnswered ? post.outcome : .failed
        note("post \(post.number) ends: \(outcome)\(post.dropped.isEmpty ? "" : ", \(post.dropped.count) dropped")")
        if !isAnswered { for key in post.keys { excused[key, default: 0] += 1 } }
        switch outcome {
        case .accepted:
            let time = scheduler.now
            for (place, key) in post.keys.enumerated() where !post.dropped.contains(place) { unrecorded.append((key, post.life, time)) }
            return PostResult(
                outcome: .accepted, status: 200, postedTokenCount: post.ids.count,
                failures: post.dropped.sorted().map { PostResult.Failure(notificationID: post.ids[$0], reason: .queueFull) })
        case .failed: return PostResult(outcome: .failed(retryAfter: nil), reason: "simulated", postedTokenCount: post.ids.count)
        }
    }

    /// A device's notifications are posted one at a time, in the order of their acceptance.
    private func checkOrder(_ key: PushKey, in post: Post) {
        if post.keys.count(where: { $0.device == key.device }) > 1 { fail("device \(key.device) is in a post twice") }
        // Another node may give up the device, or be given up, without the answer.
        let others = inFlight.values.filter { $0.life == post.life && !$0.isHandedOver }
        if others.contains(where: { $0.keys.contains { $0.device == key.device } }) { fail("two posts to device \(key.device) at once") }
        guard let device = devices.first(where: { $0.number == key.device }) else { return }
        waitingPosts[key.device]?.removeAll {
            accepted[PushKey(messageID: $0.messageID, device: key.device), default: 0] > 0 || $0.end < scheduler.now
                || $0.operationCount != device.operations.count
        }
        let asked = requests.values.filter { $0.messageID == key.messageID && $0.devices.contains { $0 === device } }.map(\.time).min()
        if let asked, let first = waitingPosts[key.device]?.first(where: { $0.time < asked && $0.messageID != key.messageID }) {
            fail("\(device.name) is notified of \(hexString(key.messageID.prefix(4))) before \(hexString(first.messageID.prefix(4)))")
        }
    }

    /// When the row of a device that is posted to was read at the earliest. One of several nodes reads it before it marks the notification for
    /// posting, and the reply to that may take as long as a lease lasts.
    var oldestRead: Int64 { engine == .cluster ? scheduler.now - Duration.seconds(5).nanoseconds : scheduler.now }

    /// The message and the device of a notification, after checking that the device may be notified.
    private func key(of notification: Delivery.Notification) -> PushKey? {
        if let content = notification.content as? V01Content { return key(of: content, token: notification.deviceToken.revealed) }
        if let content = notification.content as? SessionContent { return key(of: content, token: notification.deviceToken.revealed) }
        guard let content = notification.content as? StatusContent,
            let device = devices.first(where: {
                $0.client.keyHash == content.registrant && $0.client.installationID == content.installationID
            })
        else {
            fail("a notification is for no device")
            return nil
        }
        let token = notification.deviceToken.revealed
        guard let version = device.version(ofToken: token) else {
            fail("\(device.name) is posted with another device's token")
            return nil
        }
        if !device.mayHave(version: version, since: device.acknowledged(by: oldestRead)) {
            fail("\(device.name) is posted with the token of version \(version), after version \(device.acknowledged) was acknowledged")
        }
        if !requests.values.contains(where: { $0.messageID == content.message && $0.devices.contains { $0 === device } }) {
            fail("\(device.name) is notified of a message that nobody asked for, or long after")
        }
        return PushKey(messageID: content.message, device: device.number)
    }

    private func accept(_ key: PushKey) {
        accepted[key, default: 0] += 1
        let (count, allowed) = (accepted[key, default: 0], 1 + excused[key, default: 0])
        if count > allowed {
            fail("device \(key.device) was notified of \(hexString(key.messageID.prefix(4))) \(count) times, and \(allowed) are explained")
        }
    }

    /// Whether a post that begins now may be one that another node repeats: this node was suspended between its last look at its lease and the post,
    /// or it can't store gorush's answer.
    private func mayRepeat(for node: NodeProcess) -> Bool {
        guard nodes.count > 1 else { return false }
        return node.suspensionChanged > scheduler.now - Duration.seconds(1).nanoseconds || hasStoreTrouble(since: scheduler.now)
    }

    /// A node gives up partitions although it posts for them: it has waited for the answers of its last posts for as long as it does.
    func excuseHandedOverPosts(of life: Int) {
        let start = scheduler.now - SharedServer.times.handoverTimeout.nanoseconds
        for (number, post) in inFlight where post.life == life && post.time <= start && !post.isHandedOver {
            inFlight[number]?.isHandedOver = true
            for key in post.keys { excused[key, default: 0] += 1 }
        }
    }

    /// The node ends or is suspended: it can't know the outcome of posts in flight, nor remember what it has not stored.
    func excusePosts(of node: NodeProcess) {
        for (number, post) in inFlight where post.life == node.life && !post.isHandedOver {
            for key in post.keys { excused[key, default: 0] += 1 }
            if !node.isSuspended { inFlight[number] = nil }
        }
        let limit = scheduler.now - Duration.seconds(1).nanoseconds
        // With disk faults they may have been unstored for longer.
        let since = hasStoreTrouble(since: scheduler.now - Duration.seconds(30).nanoseconds) ? min(limit, storeTrouble.start) : limit
        for (key, life, time) in unrecorded where life == node.life && time >= since { excused[key, default: 0] += 1 }
        unrecorded.removeAll { $0.life == node.life }
    }
}

import Core
import Delivery
import Foundation
import NodeAssembly
import NodeMetrics
import RateLimits
import Storage
import StorePostgreSQL
import TestSupport
import Testing
import Waku
import WakuCrypto
import WakuPushNode

@testable import PushNode
@testable import TopicPush

/// What operators and clients rely on in any protocol whose devices register and are notified: see the article YourOwnProtocol.
extension TopicPushTests {
    @Test("A node that is killed after a post and before it recorded that repeats that notification alone, under the same id")
    func killed() async throws {
        let copy = try TemporaryFolder()
        let (data, killed, first) = (folder.path, copy.path + "/data", post("hello"))
        try await withNode { node in
            try await register(node, try registration())
            // A node that is killed now leaves the folder in this state.
            gorush.whenPosted { try? FileManager.default.copyItem(atPath: data, toPath: killed) }
            await relay.feed([first])
            try await node.wait { gorush.accepted.count == 1 }
        }
        try await withNode(in: killed, configure: { $0.unknownHold = .zero }) { node in
            try await node.wait { gorush.accepted.count == 2 }
            for message in [first, post("again")] { await relay.feed([message]) }
            try await node.wait { gorush.accepted.count == 3 }
        }
        let ids = gorush.accepted.map(\.id)
        #expect(ids[0] == ids[1] && ids[1] != ids[2])
        withExtendedLifetime(copy) {}
    }

    @Test("A device whose token is dead is not notified until it registers with a higher version")
    func deadToken() async throws {
        gorush.answer(.accepted, verdict: .dead)
        try await withNode { node in
            try await register(node, try registration())
            await relay.feed([post("to a dead token")])
            try await node.wait { node.counters.count(.tokenRemoved) == 1 }
            gorush.answer(.accepted)
            for message in [post("to nobody"), try registration(version: 2), post("to the new token")] { await relay.feed([message]) }
            try await node.wait { gorush.accepted.count == 2 }
        }
        #expect(tokens == ["token-1", "token-2"])
    }

    @Test("A device is not notified after the end of its registration")
    func expiry() async throws {
        let ahead = Duration.seconds(7200)
        try await withNode { node in
            try await register(node, try registration(end: UInt64(Timestamp.now().rawValue / 1_000_000_000) + 3600))
            await relay.feed([post("in time")])
            try await node.wait { gorush.accepted.count == 1 }
        }
        try await withNode(now: { .now() + ahead }) { node in
            // On two topics, since that of the ended device may be known still.
            let topics = [Self.chat, "/chat/1/garden/proto"]
            await relay.feed([try registration(by: .generate(), token: "other", topics: topics, clock: ahead)])
            try await node.wait { node.topicCount == 2 }
            await relay.feed([post("too late", clock: ahead)])
            try await node.wait { gorush.accepted.count == 2 }
        }
        #expect(tokens == ["token-1", "other"])
    }

    @Test("Registrations of an owner above its limit are dropped; copies of one, which anyone can send, don't use it up")
    func ownerLimit() async throws {
        try await withNode(configure: { $0.addedOptions["topic-push-registrations"] = "1/h burst 2" }) { node in
            for version in 1...3 {
                var message = try registration(version: UInt64(version))
                try await register(node, message)
                for _ in 1...4 {
                    message.timestamp = message.timestamp + .milliseconds(1)
                    await relay.feed([message])
                }
            }
            await relay.feed([post("hello")])
            try await node.wait { gorush.accepted.count == 1 }
        }
        #expect(tokens == ["token-2"])
    }

    @Test("Notifications of a device above its limit are dropped; those of others are not")
    func deviceLimit() async throws {
        var limits = Limits.none
        try limits.set("notifications-by-target=1/h burst 2")
        try await withNode(limits: limits) { node in
            try await register(node, try registration())
            for number in 1...3 { await relay.feed([post("\(number)")]) }
            for message in [try registration(by: .generate(), token: "other"), post("4")] { await relay.feed([message]) }
            try await node.wait { tokens.contains("other") && node.waitingCount == 0 }
        }
        #expect(tokens.sorted() == ["other", "token-1", "token-1"])
    }

    @Test("Throw-away keys that fill the room for devices displace each other; devices that were notified keep their places")
    func throwAwayKeys() async throws {
        try await withNode(configure: { $0.addedOptions["topic-push-max-registrations"] = "3" }) { node in
            try await register(node, try registration())
            for message in [try registration(by: .generate(), token: "second"), post("hello")] { await relay.feed([message]) }
            try await node.wait { node.counters.count(.notificationAccepted) == 2 }
            for number in 1...10 { await relay.feed([try registration(by: .generate(), token: "thrown away \(number)")]) }
            for message in [try registration(by: .generate(), token: "new"), post("again")] { await relay.feed([message]) }
            try await node.wait { gorush.accepted.count == 5 }
        }
        #expect(tokens.sorted() == ["new", "second", "second", "token-1", "token-1"])
    }

    @Test("Devices and handled messages move to PostgreSQL")
    func moved() async throws {
        let (target, first) = (try await StoreEngine.postgreSQL.location(), post("hello"))
        try await withNode { node in
            try await register(node, try registration(version: 2))
            await relay.feed([first])
            try await node.wait { node.counters.count(.notificationAccepted) == 1 }
        }
        let key = Sealer.storageKey(of: identity)
        let parts = NodeAssembly.parts + [TopicPush.description.part]
        let from = try StoreLocation.dataFolder.openForTransfer(in: folder.path, storageKey: key, parts: parts)
        let into = try target.openForTransfer(in: folder.path, storageKey: key, parts: parts)
        _ = try await StoreTransfer(from: from, to: into, named: "PostgreSQL").run()
        try from.close()
        try into.close()
        try await withNode(at: target) { node in
            for message in [first, try registration(), post("again")] { await relay.feed([message]) }
            try await node.wait { gorush.accepted.count == 2 }
        }
        #expect(tokens == ["token-2", "token-2"])
    }

    @Test("Two nodes that receive the same messages notify once")
    func twoNodes() async throws {
        let fixture = try await ClusterFixture()
        try await NodeAssembly.$added.withValue([TopicPush.description]) {
            // One node first: with two, a message may be handled before the registration that another node handles.
            try await fixture.withNodes(["a"]) { members in
                await members.feed([try registration(to: fixture.identity.publicKey)])
                try await members.wait { $0[0].fed.node.topicCount == 1 }
            }
            try await fixture.withNodes(["a", "b"]) { members in
                try await members.waitUntilShared()
                for number in 1...20 { await members.feed([post("\(number)")]) }
                try await members.wait { _ in fixture.gorush.accepted.count >= 20 }
            }
        }
        #expect(fixture.gorush.accepted.count == 20)
    }
}

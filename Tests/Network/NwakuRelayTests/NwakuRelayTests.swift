import TestSupport
import LoopbackRelay
import Testing
import Core
import Waku

@testable import NwakuRelay

/// Tests with a well-behaved node, over real sockets.
@Suite(.timeLimit(.minutes(5))) struct NwakuRelayTests {
    @Test func subscribesAndDeliversMessages() async throws {
        let network = LoopbackNetwork()
        try await withLoopback(network) { port in
            let relay = try makeRelay(port: port)
            let inbox = Inbox()
            #expect(relay.state != .attached)
            try await during({ await relay.run { inbox.deliver($0) } }) {
                try await eventually { relay.state == .attached }
                let sent = message(1)
                network.publish(sent, on: .statusDefault)
                await inbox.wait { !$0.messages.isEmpty }
                #expect(inbox.messages == [ReceivedMessage(message: sent, pubsubTopic: .statusDefault)])
            }
        }
    }

    @Test func publishesToOthersAndSeesItsOwn() async throws {
        let network = LoopbackNetwork()
        let other = network.relay()
        try await withLoopback(network) { port in
            let relay = try makeRelay(port: port)
            let inbox = Inbox()
            let others = Inbox()
            try await during({ await relay.run { inbox.deliver($0) } }) {
                try await during({ await other.run { others.deliver($0) } }) {
                    try await eventually { relay.state == .attached }
                    var sent = message(1)
                    sent.meta = [1, 2, 3]
                    try await relay.publish(sent, on: .statusDefault)
                    await others.wait { !$0.messages.isEmpty }
                    await inbox.wait { !$0.messages.isEmpty }
                    #expect(others.messages.map(\.message) == [sent])
                    #expect(inbox.messages.map(\.message) == [sent])
                }
            }
        }
    }

    @Test func subscribesAgainWhenTheNodeForgot() async throws {
        let network = LoopbackNetwork()
        try await withLoopback(network) { port in
            let relay = try makeRelay(port: port, catchUpTopics: [topicA])
            let inbox = Inbox()
            try await during({ await relay.run { inbox.deliver($0) } }) {
                try await eventually { relay.state == .attached }
                network.restart()
                // This message is not polled in time: it comes from the store.
                network.publish(message(1), on: .statusDefault)
                await inbox.wait { $0.payloads == payloads([1]) }
                network.publish(message(2), on: .statusDefault)
                await inbox.wait { $0.payloads == payloads([1, 2]) }
            }
        }
    }

    @Test func comesBackWhenTheNodeDoes() async throws {
        let network = LoopbackNetwork()
        let inbox = Inbox()
        let (port, relay) = try await withLoopback(network) { port in (port, try makeRelay(port: port, catchUpTopics: [topicA])) }
        try await during({ await relay.run { inbox.deliver($0) } }) {
            try await withLoopback(network, port: port) { _ in
                try await eventually { relay.state == .attached }
            }
            try await eventually { relay.state != .attached }
            network.restart()
            network.publish(message(1), on: .statusDefault)
            let before = try #require(relay.seenUntil[.statusDefault])
            try await withLoopback(network, port: port) { _ in
                await inbox.wait { $0.payloads == payloads([1]) }
                try await eventually { relay.state == .attached && relay.seenUntil[.statusDefault].map { $0 > before } == true }
            }
        }
    }

    @Test func fetchesMessagesLostInTheCacheFromTheStore() async throws {
        let network = LoopbackNetwork()
        try await withLoopback(network) { port in
            // More messages than a page of 100, with foreign topics in between.
            let relay = try makeRelay(port: port, pollInterval: .seconds(60), catchUpTopics: [topicA])
            let inbox = Inbox()
            try await relay.api.subscribe(to: [.statusDefault])
            for number in 0..<350 { network.publish(message(number, topic: number % 7 == 0 ? topicB : topicA), on: .statusDefault) }
            let own = payloads((0..<350).filter { $0 % 7 != 0 })
            try await during({ await relay.run { inbox.deliver($0) } }) {
                await inbox.wait { own.isSubset(of: $0.payloads) }
            }
            #expect(own.isSubset(of: inbox.payloads))
        }
    }

    @Test func catchesUpAfterDowntime() async throws {
        let network = LoopbackNetwork()
        let lastSeen = Timestamp.now()
        for number in 0..<120 { network.publish(message(number), on: .statusDefault) }
        try await withLoopback(network) { port in
            let relay = try makeRelay(port: port, catchUpTopics: [topicA], lastSeen: lastSeen)
            #expect(relay.seenUntil[.statusDefault].map { $0 <= lastSeen } == true)
            let inbox = Inbox()
            try await during({ await relay.run { inbox.deliver($0) } }) {
                await inbox.wait { $0.payloads == payloads(0..<120) }
                try await eventually { relay.seenUntil[.statusDefault].map { $0 > lastSeen } == true }
            }
            #expect(inbox.messages.count == 120)
        }
    }

    /// Otherwise a request would be decided before the registration that it is about.
    @Test func missedMessagesGoFirst() async throws {
        let network = LoopbackNetwork()
        let lastSeen = Timestamp.now()
        for number in 0..<120 { network.publish(message(number), on: .statusDefault) }
        try await withLoopback(network) { port in
            let relay = try makeRelay(port: port, catchUpTopics: [topicA], lastSeen: lastSeen)
            try await relay.api.subscribe(to: [.statusDefault])
            network.publish(message(120), on: .statusDefault)
            let inbox = Inbox()
            try await during({ await relay.run { inbox.deliver($0) } }) {
                await inbox.wait { $0.payloads == payloads(0..<121) }
            }
            #expect(inbox.messages.first?.message.payload == Array("0".utf8))
        }
    }

    @Test func watchesTheStoreBesideAPoller() async throws {
        let network = LoopbackNetwork()
        try await withLoopback(network) { port in
            let poller = try makeRelay(port: port)
            let api = try makeAPI(port: port)
            let watch = NwakuStoreWatch(
                configuration: NwakuStoreWatch.Configuration(address: api.address, interval: .milliseconds(10)), contentTopics: [topicA],
                client: client, logger: quiet)
            let polled = Inbox()
            let watched = Inbox()
            try await during({ await poller.run { polled.deliver($0) } }) {
                try await during({ await watch.run { watched.deliver($0) } }) {
                    try await eventually { poller.state == .attached && watch.state == .attached }
                    try await watch.publish(message(1), on: .statusDefault)
                    network.publish(message(2, topic: topicB), on: .statusDefault)
                    await polled.wait { $0.payloads == payloads([1, 2]) }
                    await watched.wait { $0.payloads == payloads([1]) }
                    watch.watch([topicB])
                    await watched.wait { $0.payloads == payloads([1, 2]) }
                    // A topic that is dropped while another is added is no longer queried; the new one is, from the beginning.
                    watch.unwatch([topicA])
                    network.publish(message(3), on: .statusDefault)
                    network.publish(message(4, topic: topicB), on: .statusDefault)
                    await watched.wait { $0.payloads == payloads([1, 2, 4]) }
                    watch.unwatch([topicB])
                    watch.watch([topicA])
                    await watched.wait { $0.payloads == payloads([1, 2, 4, 3]) }
                }
            }
            #expect(watched.messages.count == 4)
        }
    }

    /// As a client does that only publishes.
    @Test func watchOfNoTopicsIsAttachedAndPublishes() async throws {
        let network = LoopbackNetwork()
        try await withLoopback(network) { port in
            let poller = try makeRelay(port: port)
            let api = try makeAPI(port: port)
            let watch = NwakuStoreWatch(
                configuration: NwakuStoreWatch.Configuration(address: api.address, interval: .milliseconds(10)), client: client,
                logger: quiet)
            let polled = Inbox()
            try await during({ await poller.run { polled.deliver($0) } }) {
                try await during({ await watch.run { _ in } }) {
                    try await eventually { poller.state == .attached && watch.state == .attached }
                    try await watch.publish(message(1), on: .statusDefault)
                    await polled.wait { $0.payloads == payloads([1]) }
                }
            }
        }
    }

    /// Each page of a query skips messages on dropped topics; they are queried again when the topic is added.
    @Test func topicThatIsDroppedAndAddedWhileTheStoreIsAskedMissesNothing() async throws {
        let network = LoopbackNetwork()
        let size = StoreQuery.maximumPageSize
        let start = Timestamp.now() - .seconds(600)
        for number in 0..<3 * size {
            let topic = [topicB, topicA, topicC][number / size]
            let time = start + .milliseconds(number)
            network.publish(message(number, topic: topic, timestamp: time), on: .statusDefault, at: time)
        }
        try await withLoopback(network) { port in
            let configuration = NwakuStoreWatch.Configuration(
                address: try makeAPI(port: port).address, startTime: start - .seconds(1), interval: .milliseconds(10))
            let watch = NwakuStoreWatch(
                configuration: configuration, contentTopics: [topicA, topicB, topicC], client: client, logger: quiet)
            let inbox = Inbox()
            let run: @Sendable () async -> Void = {
                await watch.run { messages in
                    switch messages.first?.message.contentTopic {
                    case topicB: watch.unwatch([topicA])
                    case topicC: watch.watch([topicA])
                    default: break
                    }
                    inbox.deliver(messages)
                }
            }
            try await during(run) { await inbox.wait { $0.payloads == payloads(0..<3 * size) } }
            #expect(inbox.payloads == payloads(0..<3 * size))
        }
    }
}

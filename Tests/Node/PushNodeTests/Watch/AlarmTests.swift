import NodeAPI
import CurlClient
import Foundation
import LoopbackRelay
import NodeAssembly
@testable import PushNode
import NodeMetrics
import Synchronization
import TestSupport
import Testing
import Core
import Waku

@Suite("Alarms")
struct AlarmTests {
    @Test("Too long a silence and its end are reported once each; without a limit neither is")
    func silence() {
        let watch = WatchBox(limit: .seconds(10))
        #expect(watch.update(.seconds(9)) == nil)
        #expect(watch.update(.seconds(10)) == .becameSilent)
        #expect(watch.update(.seconds(11)) == nil)
        #expect(watch.watch.isSilent)
        #expect(watch.update(.zero) == .recovered)
        #expect(watch.update(.zero) == nil)
        let unlimited = WatchBox(limit: nil)
        #expect(unlimited.update(.seconds(1_000_000)) == nil)
        #expect(!unlimited.watch.isTooLong(.seconds(1_000_000)))
    }

    @Test("A relay whose answers are never confirmed raises an alarm until one is")
    func demotedRelay() async throws {
        let fixture = try NodeFixture()
        let relays = Mutex<RelaySet?>(nil)
        try await fixture.withNode(
            configure: { $0.httpAddress = SocketAddress(host: "127.0.0.1", port: 0) },
            makeRelay: { needs, loopback in
                let set = RelaySet([loopback, fixture.network.relay()])
                relays.withLock { $0 = set }
                return set
            }
        ) { node async throws in
            let made = relays.withLock { $0 }
            let set = try #require(made)
            try await eventually { try await node.scrape()[.relaysDemoted] == 0 }
            for _ in 0..<RelayRanking.unconfirmedLimit { set.note([RelayVerdict(place: 0, isConfirmed: false)]) }
            try await eventually { try await node.scrape()[.alarmActive, "alarm=\"answers_unconfirmed\""] == 1 }
            #expect(try await node.scrape()[.relaysDemoted] == 1)
            set.note([RelayVerdict(place: 0, isConfirmed: true)])
            try await eventually { try await node.scrape()[.alarmActive, "alarm=\"answers_unconfirmed\""] == 0 }
            #expect(try await node.scrape()[.relaysDemoted] == 0)
        }
    }

    @Test("A silent shard shows in readiness, metrics and alarms until any message is received")
    func silentShard() async throws {
        let fixture = try NodeFixture()
        try await fixture.withNode(configure: {
            $0.httpAddress = SocketAddress(host: "127.0.0.1", port: 0)
            $0.silenceAlarm = .seconds(2)
        }) { node async throws in
            try await eventually { try await node.scrape()[.alarmActive, "alarm=\"silence\""] == 1 }
            let readiness = try await node.get("/readyz")
            #expect(readiness.status == 503)
            #expect(String(decoding: readiness.body, as: UTF8.self).hasPrefix("silence: no message for "))
            #expect(try await node.scrape()[.ready] == 0)
            #expect(try await node.scrape()[.alarms, "alarm=\"silence\""] == 1)
            // A message for any other node ends the silence.
            try await eventually {
                node.network.publish(
                    WakuMessage(payload: [1], contentTopic: ContentTopic(rawValue: "/a/1/b/c"), timestamp: .now()), on: .statusDefault)
                return try await node.scrape()[.alarmActive, "alarm=\"silence\""] == 0
            }
            #expect(try await node.get("/readyz").status == 200)
        }
    }

    @Test("The probe that doctor has the node publish does not end a silence, although it comes back")
    func ownProbe() async throws {
        let fixture = try NodeFixture()
        let network = fixture.network
        try await fixture.withNode(
            configure: {
                $0.httpAddress = SocketAddress(host: "127.0.0.1", port: 0)
                $0.silenceAlarm = .seconds(2)
            },
            makeRelay: { needs, _ in network.relay(pubsubTopics: needs.pubsubTopics, hearsItself: true) }
        ) { node async throws in
            try await eventually { try await node.scrape()[.alarmActive, "alarm=\"silence\""] == 1 }
            // Batches are handled one after the other: when the second probe is back, the first one's batch is done.
            for _ in 0..<2 {
                let probe = await node.node.selfTest()
                #expect(probe.milliseconds != nil)
            }
            #expect(node.node.counters.silence >= .seconds(2))
            #expect(try await node.get("/readyz").status == 503)
        }
    }
}

/// A reference, because `#expect` can't call mutating methods.
private final class WatchBox {
    private(set) var watch: SilenceWatch

    init(limit: Duration?) { watch = SilenceWatch(limit: limit) }

    func update(_ silence: Duration) -> SilenceWatch.Change? { watch.update(silence) }
}

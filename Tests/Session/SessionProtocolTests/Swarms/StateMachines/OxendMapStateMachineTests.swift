import Foundation
import Core
@testable import SessionProtocol
import TestSupport
import Testing

@Suite struct OxendMapStateMachineTests {
    private static let first = ConnectionNumber(rawValue: 1)

    private func connected() -> OxendMapStateMachine {
        var source = OxendMapStateMachine(at: .zero)
        source.advance(to: .zero)
        #expect(source.takeActions() == [.connect(Self.first)])
        source.connected(Self.first, at: .zero)
        return source
    }

    /// Tags of the requests for the list, and of the subscriptions to blocks.
    private func requests(_ source: inout OxendMapStateMachine) -> (lists: [RequestTag], blocks: [RequestTag]) {
        let actions = source.takeActions()
        return (
            actions.compactMap { if case .requestServers(_, let tag) = $0 { tag } else { nil } },
            actions.compactMap { if case .subscribeToBlocks(_, let tag) = $0 { tag } else { nil } }
        )
    }

    private func answerAll(_ source: inout OxendMapStateMachine, at now: Instant) -> (lists: Int, blocks: Int) {
        let (lists, blocks) = requests(&source)
        for tag in lists + blocks { source.replied(tag, at: now) }
        return (lists.count, blocks.count)
    }

    @Test func listAndBlocksAreAskedForAfterHello() {
        var source = connected()
        #expect(answerAll(&source, at: .zero) == (1, 1))
        #expect(source.isConnected)
    }

    @Test func bodyAsksForSixFields() throws {
        let body = try JSONDecoder().decode(Body.self, from: Data(OxendMapStateMachine.serversBody.utf8))
        #expect(body.active_only)
        #expect(Set(body.fields.keys) == ["pubkey_x25519", "public_ip", "storage_lmq_port", "swarm_id", "block_hash", "height"])
        #expect(body.fields.values.allSatisfy { $0 })
    }

    private struct Body: Decodable {
        // swift-format-ignore: AlwaysUseLowerCamelCase
        let active_only: Bool
        let fields: [String: Bool]
    }

    @Test func listIsAskedForEvery10MinutesAndBlocksEvery30() {
        var source = connected()
        var (lists, blocks) = (0, 0)
        for minute in 0...60 {
            source.advance(to: .seconds(60 * minute))
            let (more, other) = answerAll(&source, at: .seconds(60 * minute))
            (lists, blocks) = (lists + more, blocks + other)
        }
        #expect(lists == 7 && blocks == 3)
    }

    @Test func blockAsksAgain() {
        var source = connected()
        _ = answerAll(&source, at: .zero)
        source.want(at: .seconds(5))
        #expect(answerAll(&source, at: .seconds(5)) == (1, 0))
    }

    @Test func floodOfBlocksAsksOnceASecond() {
        var source = connected()
        _ = answerAll(&source, at: .zero)
        var lists = 0
        for step in 1...1000 {
            source.want(at: .milliseconds(10 * step))
            source.advance(to: .milliseconds(10 * step))
            lists += answerAll(&source, at: .milliseconds(10 * step)).lists
        }
        #expect(lists == 10)
    }

    @Test func blockDuringARequestAsksAfterItsReply() {
        var source = connected()
        let (lists, _) = requests(&source)
        source.want(at: .seconds(2))
        #expect(source.takeActions().isEmpty)
        source.replied(lists[0], at: .seconds(3))
        #expect(requests(&source).lists.count == 1)
    }

    @Test func silentOxendIsDisconnected() {
        var source = connected()
        _ = source.takeActions()
        source.advance(to: .seconds(60))
        #expect(source.takeActions() == [.close(Self.first)])
        #expect(!source.isConnected && source.nextWakeUp == .seconds(70))
    }

    @Test func pausesGrow() {
        var source = OxendMapStateMachine(at: .zero)
        var now = Instant.zero
        for (index, pause) in [10, 30, 60, 120, 120].enumerated() {
            source.advance(to: now)
            let number = ConnectionNumber(rawValue: UInt64(index + 1))
            #expect(source.takeActions() == [.connect(number)])
            source.failed(number, at: now)
            #expect(source.nextWakeUp == now + .seconds(pause))
            now += .seconds(pause)
        }
        source.advance(to: now)
        source.connected(ConnectionNumber(rawValue: 6), at: now)
        source.failed(ConnectionNumber(rawValue: 6), at: now)
        #expect(source.nextWakeUp == now + .seconds(10))
    }

    @Test func connectionWithoutHelloIsGivenUp() {
        var source = OxendMapStateMachine(at: .zero)
        source.advance(to: .zero)
        _ = source.takeActions()
        source.advance(to: .seconds(30))
        #expect(source.takeActions() == [.close(Self.first)])
    }

    @Test func eventsOfOldConnectionsAreIgnored() {
        var source = connected()
        _ = answerAll(&source, at: .zero)
        source.failed(Self.first, at: .seconds(1))
        source.connected(Self.first, at: .seconds(2))
        source.replied(RequestTag(rawValue: 1), at: .seconds(2))
        source.want(at: .seconds(2))
        #expect(source.takeActions().isEmpty && !source.isConnected)
    }
}

@testable import Cluster
import Core
import Storage
import Testing

@Suite struct ClusterStateTests {
    private let key = MessageKey(prefix: 7)
    private let sentAt = Timestamp(rawValue: 1_000_000_000_000)

    private func state() -> ClusterState {
        let configuration = ClusterConfiguration()
        return ClusterState(
            member: ClusterMember(.number(1), name: "host", configuration: configuration, at: .at(0)),
            share: MessageShare(.number(1), configuration: configuration), window: ClaimWindow(firstHour: 0))
    }

    /// A message that this node handles.
    private func state(handling key: MessageKey, protocolCount: Int) -> ClusterState {
        var state = state()
        _ = state.share.heard(key, rank: 0, at: .at(0))
        state.entries[key] = ClusterMessage(turn: .none, heardAt: .at(0), sentAt: sentAt, cost: 1, open: protocolCount)
        return state
    }

    @Test func nodesWithoutFinishedMessagesAreForgotten() {
        var state = state()
        func read(_ rows: [(node: UInt64, sequence: Int64)], second: Int) -> [NodeID: Int64] {
            state.finishedElsewhere(
                rows.map { FinishedRow(node: .number($0.node), sequence: $0.sequence, prefixes: []) }, at: .at(second * 1000))
            return state.finishedUpTo.mapValues(\.sequence)
        }
        #expect(read([(2, 7), (2, 8), (3, 1)], second: 0) == [.number(2): 8, .number(3): 1])
        #expect(read([(3, 2)], second: 1800) == [.number(2): 8, .number(3): 2])
        #expect(read([], second: 3599) == [.number(2): 8, .number(3): 2])
        #expect(read([], second: 3600) == [.number(3): 2])
    }

    @Test(arguments: 0..<4) func nodeDrainsForEachReason(reason: Int) {
        var state = state()
        for isOn in [true, false] {
            switch reason {
            case 0: state.isLeaving = isOn
            case 1: state.isDrainRequested = isOn
            case 2: state.isClockWrong = isOn
            default:
                for time in [0, 10_000] as [Milliseconds] {
                    state.storeTrouble.heartbeatCommitted(storeFails: isOn, lease: .seconds(5), at: .at(time))
                }
            }
            state.updateDraining()
            #expect(state.member.isDraining == isOn)
        }
    }

    @Test func clocksOfAllLiveNodesAreOff() {
        func areAllOff(_ rows: [(state: LeaseRow.State, trouble: LeaseRow.Trouble?)]) -> Bool {
            let leases = rows.enumerated().map { index, row in
                LeaseRow(node: .number(UInt64(index)), state: row.state, settings: row.trouble?.settings)
            }
            return ClusterView(isMember: true, leases: leases, partitions: []).areAllClocksOff
        }
        #expect(areAllOff([(.draining, .wrongClock), (.draining, .wrongClock), (.ended, nil)]))
        // Without another node nothing says which clock is wrong.
        #expect(!areAllOff([(.draining, .wrongClock), (.ended, .wrongClock)]))
        #expect(!areAllOff([(.draining, .wrongClock), (.draining, .wrongClock), (.live, nil)]))
        #expect(!areAllOff([(.draining, .wrongClock), (.draining, .failingStore)]))
        #expect(!areAllOff([]))
    }

    @Test(arguments: [StoreError.Code.damaged, .unavailable]) func onlyDamageIsTheSameForAllNodes(code: StoreError.Code) {
        var state = state()
        #expect(!state.isStoreFailing(outage: nil) && state.isStoreFailing(outage: "away"))
        state.outboxFailure = StoreError(code: code, message: "")
        #expect(state.isStoreFailing(outage: nil) == (code == .unavailable))
    }

    /// Read 5 to 6 s before it is compared.
    @Test(arguments: [(107, 1), (106, 0), (105, 0), (103, -2)]) func clocksAreComparedAtTheTimeOfTheReading(wall: Int, lead: Int) {
        let reading = ClusterView.Clock(time: .seconds(100), askedAt: .at(0), receivedAt: .at(1000))
        #expect(reading.certainLead(of: .seconds(wall), at: .at(6000)) == .seconds(lead))
    }

    @Test func messageIsOpenUntilEveryProtocolHasHandledIt() {
        var state = state(handling: key, protocolCount: 2)
        state.settle(key, at: .at(1), clock: sentAt) { _ in }
        #expect(state.share.isOpen(key) && state.entries[key]?.open == 1)
        state.settle(key, at: .at(2), clock: sentAt) { _ in }
        #expect(!state.share.isOpen(key) && state.entries.isEmpty)
    }

    @Test func messageThatCouldNotBeStoredIsTriedAgain() {
        var state = state(handling: key, protocolCount: 1)
        #expect(state.share.nextWakeUp == nil)
        state.settle(key, at: .at(1), clock: sentAt) { $0.outcome = .failed }
        #expect(state.share.isOpen(key) && state.entries.count == 1)
        #expect(state.share.nextWakeUp != nil)
    }

    @Test func abandonedMessageIsLeftToOthers() {
        var state = state(handling: key, protocolCount: 1)
        state.settle(key, at: .at(1), clock: sentAt) { $0.isAbandoned = true }
        #expect(state.entries.isEmpty)
        #expect(state.share.heard(key, rank: 0, at: .at(2)) == .handle)
    }
}

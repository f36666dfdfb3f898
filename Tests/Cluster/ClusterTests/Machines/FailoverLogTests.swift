@testable import Cluster
import Core
import Testing

struct FailoverLogTests {
    private func view(_ leases: [(number: UInt64, state: LeaseRow.State)], timeline: UInt32 = 1, isMember: Bool = true) -> ClusterView {
        var view = ClusterView(
            isMember: isMember,
            leases: leases.map { LeaseRow(node: .number($0.number), state: $0.state, name: "host-\($0.number)") }, partitions: [])
        view.timeline = timeline
        return view
    }

    @Test func aLiveNodeWhoseLeaseEndsIsLost() {
        var log = FailoverLog()
        #expect(log.observed(view([(1, .live), (2, .live), (3, .ended)])) == [])
        #expect(log.observed(view([(1, .live), (2, .ended), (3, .ended)])) == [.nodeLost(name: "host-2")])
        #expect(log.observed(view([(1, .live), (2, .ended)])) == [])
    }

    /// Others may not have seen that it was draining.
    @Test func aNodeThatEndsItsOwnLeaseIsNotLost() {
        var log = FailoverLog()
        var view = view([(1, .live), (2, .live)])
        #expect(log.observed(view) == [])
        view.leases[1].state = .ended
        view.leases[1].renewals += 1
        #expect(log.observed(view) == [])
    }

    @Test func aNodeThatHandsOverIsNotLost() {
        var log = FailoverLog()
        for state in [LeaseRow.State.live, .draining, .ended] { #expect(log.observed(view([(1, .live), (2, state)])) == []) }
    }

    @Test func aHigherTimelineIsAPromotedStandby() {
        var log = FailoverLog()
        #expect(log.observed(view([], timeline: 3)) == [])
        #expect(log.observed(view([], timeline: 4)) == [.databasePromoted(timeline: 4)])
        #expect(log.observed(view([], timeline: 4)) == [])
        #expect(log.observed(view([], timeline: 3)) == [])
    }

    @Test func aViewWithoutTheOwnLeaseReportsNothing() {
        var log = FailoverLog()
        #expect(log.observed(view([(2, .live)])) == [])
        #expect(log.observed(view([], timeline: 0, isMember: false)) == [])
        #expect(log.observed(view([(2, .ended)])) == [.nodeLost(name: "host-2")])
    }

    @Test func silenceIsMeasuredFromTheLastRenewal() {
        var observer = LeaseObserver(ClusterConfiguration())
        func lease(_ renewals: UInt64) -> [LeaseRow] { [LeaseRow(node: .number(1), renewals: renewals)] }
        observer.observed(lease(1), at: .at(0))
        observer.observed(lease(1), at: .at(2000))
        #expect(observer.silence(of: .number(1), at: .at(3000)) == .seconds(3))
        observer.observed(lease(2), at: .at(4000))
        #expect(observer.silence(of: .number(1), at: .at(4500)) == .milliseconds(500))
        #expect(observer.silence(of: .number(2), at: .at(4500)) == nil)
        // A lease lasts 5 s.
        #expect(observer.silent(at: .at(8999), except: .number(2)).isEmpty)
        #expect(observer.silent(at: .at(9000), except: .number(2)).map(\.node) == [.number(1)])
    }

    @Test func aLeaseIsSeenToBeRenewedWhenItsCountChanges() {
        var observer = LeaseObserver(ClusterConfiguration())
        func observe(_ renewals: UInt64) -> Bool {
            observer.observed([LeaseRow(node: .number(1), renewals: renewals)], at: .at(0))
            return observer.isRenewed(.number(1))
        }
        #expect(!observer.isRenewed(.number(1)))
        #expect([1, 1, 2, 2].map(observe) == [false, false, true, true])
        observer.restart()
        #expect([2, 3].map(observe) == [false, true])
    }
}

import ArgumentParser
import PushNode
import Testing

@testable import WakuPushCommands

@Suite("Selection of notifications in the outbox")
struct OutboxSelectionTests {
    @Test("Up to ten ids are named")
    func namedIDs() {
        #expect(OutboxSelection.named([17]) == "17")
        #expect(OutboxSelection.named(Array(1...10)) == "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")
        #expect(OutboxSelection.named(Array(1...13)) == "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more")
    }

    @Test("Ids that wait at other nodes name these")
    func otherNodes() throws {
        let selection = try OutboxSelection.parse(["17", "18"])
        let none = AdminAPI.Count([], of: try selection.selected())
        let failure = #expect(throws: CommandFailure.self) { try selection.report(none, elsewhere: ["node-2": 1, "node-1": 1]) }
        #expect(
            failure?.message
                == "notifications wait at other nodes of the cluster (1 at node-1, 1 at node-2): run the command there")
        let ended = #expect(throws: CommandFailure.self) { try selection.report(none) }
        #expect(ended?.message == "these ids are not waiting: see waku-push admin outbox list")
        let found = AdminAPI.Count([17], of: try selection.selected())
        try selection.report(found, elsewhere: ["node-2": 1])
        try OutboxSelection.parse(["--all"]).report(AdminAPI.Count(count: 0), elsewhere: ["node-2": 1])
    }

    @Test func aDrainNamesWhatItWaitsForAndHowToUndoIt() {
        let undo = "the node keeps draining until waku-push admin drain --undo"
        #expect(
            Admin.Drain.notice(3, DurationArgument("10m"))
                == "waiting up to 10m for the outbox, which has 3 notifications; if this is interrupted, \(undo)")
        #expect(Admin.Drain.timedOut(3).message.hasSuffix(undo))
    }
}

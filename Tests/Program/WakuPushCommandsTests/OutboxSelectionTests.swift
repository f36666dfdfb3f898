import ArgumentParser
import PushNode
import TestSupport
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

    @Test func aListThatIsCutOffSaysSo() async throws {
        let fixture = try await AdminFixture()
        let list = ["admin", "registrations", "list", "--json", "--data", fixture.data, "--limit"]
        for (arguments, text) in [
            (list + ["2", "--offset", "1"], "there are more than these 2: give a larger --limit, or --offset 3"),
            (["admin", "topics", "--data", fixture.data, "--limit", "1"], "there are more than these 1: give a larger --limit"),
        ] {
            let ended = try await run(arguments)
            #expect(ended.status == 0 && ended.failure == text, "\(ended.errors)")
        }
        for whole in [list + ["4"], list + ["\(Int.max)"], list + ["3", "--offset", "1"]] {
            #expect(try await run(whole).errors == "")
        }
    }

    @Test func aDrainNamesWhatItWaitsForAndHowToUndoIt() {
        let undo = "the node keeps draining until waku-push admin drain --undo"
        #expect(
            Admin.Drain.notice(3, DurationArgument("10m"))
                == "waiting up to 10m for the outbox to empty, 3 left; if this is interrupted, \(undo)")
        #expect(Admin.Drain.timedOut(3).message.hasSuffix(undo))
    }
}

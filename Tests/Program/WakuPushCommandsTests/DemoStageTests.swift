import Testing

@testable import WakuPushCommands

@Suite(.timeLimit(.minutes(1)))
struct DemoStageTests {
    /// Such as one that can't listen: the demo would hang.
    @Test func nothingWaitsForThePortOfAServerThatEnded() async throws {
        #expect(try await GorushStandIn().running { $0 } != "http://127.0.0.1:0")
        await #expect(throws: CommandFailure.self) { try await withServer({ _ in }) { $0 } }
    }
}

import Testing

@testable import WakuPushCommands

@Suite(.timeLimit(.minutes(1)))
struct DemoStageTests {
    /// Such as one that can't listen: the demo would hang.
    @Test func nothingWaitsForThePortOfAServerThatEnded() async throws {
        let gorush = GorushStandIn()
        let server = Task { try await gorush.run() }
        #expect(try await gorush.port > 0)
        server.cancel()
        _ = await server.result
        await #expect(throws: CommandFailure.self) { try await gorush.port }
    }
}

import Foundation
import Testing

@testable import PushBench

@Suite struct SessionBenchTests {
    /// On a small scale: all that is sent is answered, and every figure is there.
    @Test(.timeLimit(.minutes(5))) func everyPartIsMeasured() async throws {
        var settings = BenchSettings(seconds: 0.05, folder: NSTemporaryDirectory())
        settings.rounds = 1
        let bench = try SessionBench(settings: settings, subscriptionCount: 500, serverCount: 20, renewalRate: 350)
        let results = try await bench.measureRequests() + [try await bench.measureStart(), try await bench.measureRenewals()]
        #expect(
            results.map(\.name) == [
                "session subscribe", "session subscribe, onion", "session notify", "session start with 500 subscriptions",
                "session renewals",
            ])
        #expect(results.allSatisfy { $0.unanswered == 0 && ($0.messages ?? 0) > 0 })
        for result in results.prefix(3) {
            #expect((result.ratioToFloor ?? 0) > 0 && (result.rate ?? 0) > 0)
            let sum = result.floor.reduce(0) { $0 + $1.count * $1.microseconds }
            #expect(result.floor.count > 3 && sum > 0)
        }
        #expect((results[3].details["loadMilliseconds"] ?? 0) > 0)
        #expect(results[4].details["connections"] == 20 && (results[4].details["coresBusy"] ?? 0) > 0)
    }
}

import Core
import Testing

@Suite struct TimeoutTests {
    /// Applications give them for "no limit".
    @Test(arguments: [Duration.seconds(Int64.max), .seconds(Int64.max / 2), .zero - .seconds(1)])
    func extremeTimeoutsDoNotTrap(timeout: Duration) async {
        let result = await withTimeout(timeout) {
            await Task.yield()
            return true
        }
        #expect(result == true || timeout < .zero)
        let pause = Task { try? await Task.sleep(for: timeout.forSleeping) }
        pause.cancel()
        await pause.value
    }
}

import StatusProtocol
import StatusRules
import Testing

@testable import StatusV01Server

@Suite struct V01PendingRequestTests {
    @Test(arguments: [false, true], [false, true]) func oneRefusedEntryFailsTheRequest(wasRefused: Bool, isRefused: Bool) {
        let state = V01PendingRequest.State.awaiting([], hasBadToken: false, isRefused: wasRefused).adding([], isRefused: isRefused)
        let verdict = V01PendingRequest(state: state).verdict([:])
        #expect(verdict.error == (wasRefused || isRefused ? .internalError : nil))
        #expect(verdict.isFinal == !(wasRefused || isRefused))
    }

    @Test(arguments: [false, true], [false, true]) func oneBadTokenIsReported(hadBadToken: Bool, hasBadToken: Bool) {
        let state = V01PendingRequest.State.awaiting([], hasBadToken: hadBadToken, isRefused: false)
            .adding([], hasBadToken: hasBadToken, isRefused: false)
        #expect(V01PendingRequest(state: state).verdict([:]).error == (hadBadToken || hasBadToken ? .badToken : nil))
    }
}

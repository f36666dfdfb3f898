import StatusProtocol
import Testing

@testable import StatusServer

@Suite("Answers that are remembered")
struct AnswerCodeTests {
    @Test("A final answer is remembered in a byte an entry; one with an internal error is not final")
    func codes() {
        let errors: [PushNotificationReport.ErrorType?] = [nil, .unknown, .wrongToken, .notRegistered]
        #expect(AnswerCode.final(errors)?.map(AnswerCode.error) == errors)
        #expect(AnswerCode.final([nil, .internalError]) == nil)
    }
}

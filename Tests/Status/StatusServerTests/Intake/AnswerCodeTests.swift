import StatusProtocol
import Testing

@testable import StatusServer

@Suite("Stored answers")
struct AnswerCodeTests {
    @Test("A final answer is stored as one byte per entry; an answer with an internal error is not final")
    func codes() {
        let errors: [PushNotificationReport.ErrorType?] = [nil, .unknown, .wrongToken, .notRegistered]
        #expect(AnswerCode.final(errors)?.map(AnswerCode.error) == errors)
        #expect(AnswerCode.final([nil, .internalError]) == nil)
    }
}

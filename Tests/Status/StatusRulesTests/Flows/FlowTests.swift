import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

/// Messages of status-go's clients are answered as by its server, except for the deviations.
@Suite struct FlowTests {
    @Test(arguments: FlowReplay.names)
    func flow(_ name: String) throws {
        let outcome = try FlowReplay.recorded.get().outcome(of: name)
        let expected = outcome.expected
        try #require(outcome.answers.count == expected.answers.count)
        for (answer, expected) in zip(outcome.answers, expected.answers) {
            #expect(answer.recipient.uncompressed == expected.recipient)
            #expect(answer.contentTopic.rawValue == expected.contentTopic)
            let body = try ExpectedFlow.Body(answer.kind.rawValue, answer.payload)
            switch (body, expected.body) {
            case (.registration(let came), .registration(let expected)):
                #expect(came.error == expected.error)
                #expect(came.requestID == expected.requestID)
            case (.query(let rows, let messageID, let rowCount), .query(let expectedRows, let expectedID, let expectedCount)):
                #expect(messageID == expectedID)
                #expect(rowCount == expectedCount)
                #expect(rows.subtracting(expectedRows) == [])
                #expect(expectedRows.subtracting(rows) == [])
            case (.request(let came), .request(let expected)):
                #expect(came.messageID == expected.messageID)
                #expect(came.reports == expected.reports)
            default:
                Issue.record("another kind of answer: \(answer.kind)")
            }
        }
    }

    @Test(arguments: FlowReplay.names)
    func notificationsOfFlow(_ name: String) throws {
        let outcome = try FlowReplay.recorded.get().outcome(of: name)
        #expect(outcome.notified.count == outcome.expected.notified.count)
        #expect(Set(outcome.notified) == Set(outcome.expected.notified))
    }

    @Test(arguments: FlowReplay.names)
    func answersOfFlowComeAfterTheRecordedMessage(_ name: String) throws {
        let replay = try FlowReplay.recorded.get()
        let recorded = try replay.flow(name).wireIn.compactMap(\.answersSoFar)
        if !recorded.isEmpty { #expect(try replay.outcome(of: name).answersAfter == recorded) }
    }

    @Test func answersThatDoNotDeviateAreTheRecordedBytes() throws {
        let replay = try FlowReplay.recorded.get()
        var count = 0
        for name in FlowReplay.names where FlowDeviation.all[name] == nil {
            let payloads = try replay.flow(name).wireOut?.compactMap(\.applicationMetadata?.payload?.bytes) ?? []
            #expect(try replay.outcome(of: name).answers.map(\.payload) == payloads, "\(name)")
            count += payloads.count
        }
        #expect(count > 50)
    }

    @Test func everyDeviationIsOfAFlowAndDeviates() throws {
        let replay = try FlowReplay.recorded.get()
        for name in FlowDeviation.all.keys {
            let flow = try replay.flow(name)
            let outcome = try replay.outcome(of: name)
            let asRecorded = flow.wireOut?.compactMap(\.applicationMetadata?.payload?.bytes) ?? []
            let isSameAnswer = outcome.answers.count == (flow.wireOut ?? []).count && outcome.answers.map(\.payload) == asRecorded
            #expect(!isSameAnswer || (flow.gorush ?? []).count != outcome.notified.count, "\(name)")
        }
    }
}

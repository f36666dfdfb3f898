import Core
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

@testable import PushClient

/// Which messages an event concerns. `ClientSimulation` checks that no other message could go on.
@Suite struct ActiveMessagesTests {
    private static let start = MachineBench.start
    private static let life = NotificationMachine.messageLife

    private func record(_ number: UInt8, to recipients: [PublicKey], begun: Timestamp = Self.start) -> MessageRecord {
        MessageRecord(
            messageID: [number], chatHash: [], authorHash: [], kind: 1, content: [], begun: begun,
            recipients: recipients.map { .init(registrant: $0, installations: [], search: .init()) })
    }

    @Test func onlyMessagesToARegistrantAreConcernedByNewsAboutIt() {
        let (alice, bob) = (newKey(), newKey())
        let records = [record(0, to: [alice]), record(1, to: [bob]), record(2, to: [bob, alice])]
        var active = ActiveMessages()
        for record in records { active.insert(record) }
        #expect(active.takeDue(at: Self.start) == [[0], [1], [2]] && active.takeDue(at: Self.start) == [])
        active.noteNews(about: [bob, newKey()])
        #expect(active.takeDue(at: Self.start) == [[1], [2]] && active.ids(for: alice) == [[0], [2]])
        active.remove(records[2])
        active.noteNews(about: [alice])
        #expect(active.takeDue(at: Self.start) == [[0]] && active.ids(for: alice) == [[0]])
        active.noteNews()
        #expect(active.takeDue(at: Self.start) == [[0], [1]])
    }

    @Test func messagesGoOnAtTheirTimes() {
        let records = (0..<3).map { record($0, to: [newKey()], begun: Self.start + .seconds(Int64($0))) }
        var active = ActiveMessages()
        for record in records { active.insert(record) }
        for id in active.takeDue(at: Self.start) { active.wait(records[Int(id[0])]) }
        #expect(active.nextWakeUp == Self.start + Self.life)
        #expect(active.takeDue(at: Self.start + Self.life + .seconds(1)) == [[0], [1]])
        active.wait(records[0])
        // It was not advanced: it goes on as soon as it is asked for.
        #expect(active.nextWakeUp == Self.start + Self.life)
        active.remove(records[0])
        #expect(active.nextWakeUp == Self.start + Self.life + .seconds(2))
        var resting = records[2]
        resting.recipients[0].search?.restsUntil = StoredTime(Self.start + .seconds(5))
        active.noteChange(of: resting)
        #expect(active.nextWakeUp == Self.start + .seconds(5))
    }
}

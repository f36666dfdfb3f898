import PushNode
import NodeAPI
import Testing

@testable import Operations

@Suite("Doctor on Session's push server")
struct SessionDoctorTests {
    private func findings(_ session: DoctorFacts.Session) -> [String: Finding.Verdict] {
        var facts = DoctorFacts(
            keyProblem: nil, folder: .init(exists: true, isOwned: true, isWritable: true, mode: 0o700), freeBytes: nil, files: nil,
            database: .missing, daemon: nil, pubsubTopics: [], relays: [], selfTest: .notDone(""), gorushes: [], takesFeedback: false)
        facts.session = session
        return Dictionary(uniqueKeysWithValues: NodeChecks.session(facts).map { ($0.check, $0.verdict) })
    }

    @Test func itIsNotMentionedWhenItIsOffAndNothingIsStored() {
        #expect(findings(.init(isOn: false, keyProblem: "x", servers: .unusable("x"), subscriptions: 0)).isEmpty)
    }

    @Test func storedSubscriptionsWithoutAServerAreAWarning() {
        #expect(findings(.init(isOn: false, keyProblem: nil, servers: .file(count: 0), subscriptions: 1)) == ["session": .warn])
    }

    @Test func keyAndStorageServersAreChecked() {
        let good = findings(.init(isOn: true, keyProblem: nil, servers: .file(count: 3), subscriptions: 0))
        #expect(good == ["onion key": .ok, "storage servers": .ok])
        #expect(findings(.init(isOn: true, keyProblem: "no", servers: .oxend("ipc:///x"), subscriptions: 0))["onion key"] == .fail)
        for servers in [DoctorFacts.Session.Servers.file(count: 0), .unusable("broken")] {
            #expect(findings(.init(isOn: true, keyProblem: nil, servers: servers, subscriptions: 0))["storage servers"] == .fail)
        }
    }
}

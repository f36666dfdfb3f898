import NodeAPI
import Testing

@testable import SessionServer

@Suite("Doctor on Session's push server")
struct SessionDoctorTests {
    private func findings(_ setup: SessionSetup, daemon: [Finding] = []) -> [String: Finding.Verdict] {
        Dictionary(uniqueKeysWithValues: SessionChecks.doctor(setup, daemon: daemon).map { ($0.check, $0.verdict) })
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
        for servers in [SessionSetup.Servers.file(count: 0), .unusable("broken")] {
            #expect(findings(.init(isOn: true, keyProblem: nil, servers: servers, subscriptions: 0))["storage servers"] == .fail)
        }
    }

    @Test func theDaemonsFindingsOnSessionAreListed() {
        let daemon = [Finding("session oxend", .warn, "not connected"), Finding("disk", .warn, "full")]
        let found = findings(.init(isOn: true, keyProblem: nil, servers: .file(count: 3), subscriptions: 0), daemon: daemon)
        #expect(found["session oxend"] == .warn && found["disk"] == nil)
    }
}

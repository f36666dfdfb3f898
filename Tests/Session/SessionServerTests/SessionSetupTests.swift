import Core
import Delivery
import NodeAPI
import Testing

@testable import SessionServer

@Suite("Doctor on Session's push server")
struct SessionDoctorTests {
    private func findings(_ setup: SessionSetup, daemon: [Finding] = []) -> [String: Finding.Verdict] {
        Dictionary(uniqueKeysWithValues: SessionChecks.doctor(setup, daemon: daemon).map { ($0.check, $0.verdict) })
    }

    @Test func itIsNotMentionedWhenItIsOffAndNothingIsStored() {
        #expect(findings(.init(isOn: false, keyProblem: "x", servers: .unusable("x"), subscriptions: [:])).isEmpty)
    }

    @Test func storedSubscriptionsWithoutAServerAreAWarning() {
        let setup = SessionSetup(isOn: false, keyProblem: nil, servers: .file(count: 0), subscriptions: [.firebase: 1])
        #expect(findings(setup) == ["session": .warn])
    }

    @Test func keyAndStorageServersAreChecked() {
        let good = findings(.init(isOn: true, keyProblem: nil, servers: .file(count: 3), subscriptions: [:]))
        #expect(good == ["onion key": .ok, "storage servers": .ok])
        #expect(findings(.init(isOn: true, keyProblem: "no", servers: .oxend("ipc:///x"), subscriptions: [:]))["onion key"] == .fail)
        for servers in [SessionSetup.Servers.file(count: 0), .unusable("broken")] {
            #expect(findings(.init(isOn: true, keyProblem: nil, servers: servers, subscriptions: [:]))["storage servers"] == .fail)
        }
    }

    @Test func theDaemonsFindingsOnSessionAreListed() {
        let daemon = [Finding("session oxend", .warn, "not connected"), Finding("disk", .warn, "full")]
        let found = findings(.init(isOn: true, keyProblem: nil, servers: .file(count: 3), subscriptions: [:]), daemon: daemon)
        #expect(found["session oxend"] == .warn && found["disk"] == nil)
    }

    @Test func devicesOfServicesWithoutAnEndpointAreAWarning() {
        let routing = EndpointRouting([EndpointRule(name: "session", services: [.firebase, .apns])])
        let services = SessionChecks.services(of: routing, apnsTopic: "")
        #expect(services == [.firebase])
        func unserved(_ subscriptions: [PushService: Int]) -> Finding? {
            let setup = SessionSetup(
                isOn: true, keyProblem: nil, servers: .file(count: 3), subscriptions: subscriptions, services: services)
            return SessionChecks.doctor(setup, daemon: []).first { $0.check == "devices" }
        }
        #expect(unserved([.firebase: 9, .webPush: 0]) == nil)
        let finding = unserved([.firebase: 9, .webPush: 2, .apns: 1])
        #expect(finding?.text == "Session: no endpoint for registered devices (1 apns, 2 webpush): they are not notified")
        #expect(finding?.remedy == "start the node with --web-push and a gorush endpoint for their platform and app")
    }
}

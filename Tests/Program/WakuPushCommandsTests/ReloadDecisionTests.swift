import Foundation
import NodeAPI
import TestSupport
import Testing

@testable import WakuPushCommands

/// The effects of configuration files that replace each other.
struct ReloadDecisionTests {
    private let folder: TemporaryFolder
    private let key: KeyFile

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
        try "secret".write(toFile: folder.path + "/token", atomically: true, encoding: .utf8)
    }

    private func plan(_ text: String) throws -> Serve.Plan { try loaded(text) { $0 } }

    private func loaded<Value>(_ text: String, _ read: (Serve.Plan) throws -> Value) throws -> Value {
        let path = folder.path + "/waku-push.yaml"
        try "identity: \(key.path)\ndata: \(folder.path)/data\n\(text)".write(toFile: path, atomically: true, encoding: .utf8)
        let invocation = Invocation(
            arguments: ["waku-push", "serve", "--config", path], environment: [:], columns: 80, writeOutput: { _ in false },
            writeError: { _ in false })
        return try Invocation.$current.withValue(invocation) { try read(Serve.reloadedPlan()) }
    }

    private func endpoints(_ lines: String...) -> String { "gorush-endpoints:\n" + lines.map { "  - \($0)\n" }.joined() }

    private let apple = #"{name: apple, url: "http://127.0.0.1:1", platforms: apn}"#
    private let google = #"{name: google, url: "http://127.0.0.1:2", platforms: firebase}"#

    @Test func reloadableOptionsApplyAndOthersWait() throws {
        let started = try plan("log-level: info\n")
        let new = try plan("log-level: debug\nmax-request-age: 5m\ngorush-batch: 7\n")
        let first = ReloadDecision(started: started, last: started, new: new)
        #expect(first.applied == ["log-level"] && first.waiting == ["max-request-age", "gorush-batch"] && first.replacesGorush)
        // The same file again: the options still wait.
        let second = ReloadDecision(started: started, last: new, new: new)
        #expect(second.applied == [] && second.waiting == first.waiting)
        // Back to the file of the start.
        let third = ReloadDecision(started: started, last: new, new: started)
        #expect(third.applied == ["log-level"] && third.waiting == [])
    }

    /// Nodes of a cluster compare what Apple and Google get.
    @Test func profilesAndNotificationsAreSharedSettings() throws {
        func shared(_ text: String) throws -> [String: String] {
            try loaded(text) { plan in try plan.gorush.map { try ReplaceableGorush($0) }.sharedSettings }
        }
        #expect(try shared("") == ["--payload-profile": "combined", "notifications": "empty"])
        #expect(try shared("payload-profile: private\n")["--payload-profile"] == "private")
        let other = #"{name: google, url: "http://127.0.0.1:2", platforms: firebase, payload-profile: private}"#
        #expect(try shared(endpoints(apple, google))["--payload-profile"] == "combined")
        #expect(try shared(endpoints(apple, other))["--payload-profile"] == "combined, private")
        let notifications = try ["{title: A, sound: s}", "{sound: s, title: A}", "{title: B, sound: s}"].map { entry in
            try #require(try shared("notifications:\n  - \(entry)\n")["notifications"])
        }
        #expect(notifications[0] == notifications[1] && notifications[0] != notifications[2])
        #expect(notifications[0].hasPrefix("1 entries ("))
    }

    @Test func rulesOfEndpointsWaitForARestartUntilTheyAreThoseOfTheStart() throws {
        let started = try plan(endpoints(apple, google))
        let swapped = try plan(endpoints(google, apple))
        var last = started
        for _ in 0..<2 {
            let decision = ReloadDecision(started: started, last: last, new: swapped)
            #expect(!decision.replacesGorush && decision.applied == [] && decision.waiting == ["gorush-endpoints"])
            last = swapped
        }
        let restored = ReloadDecision(started: started, last: last, lastGorush: started, new: started)
        #expect(restored.replacesGorush && restored.applied == [] && restored.waiting == [])
    }

    /// Settings that waited with the rules apply, and are named, once the rules are those of the start again.
    @Test func settingsOfGorushThatWaitedWithTheRulesAreNamedWhenTheyApply() throws {
        let file = try write("secret", to: "gorush-token")
        let started = try plan("allow-apn-topic: a\ngorush-token-file: \(file)\n")
        _ = try write("another secret", to: "gorush-token")
        let settings = "gorush: http://127.0.0.1:3\ngorush-token-file: \(file)\n"
        let waiting = try plan("allow-apn-topic: b\n" + settings)
        let new = try plan("allow-apn-topic: a\n" + settings)
        let decision = ReloadDecision(started: started, last: waiting, lastGorush: started, new: new)
        #expect(decision.replacesGorush && decision.applied == ["gorush", "gorush-token-file (content)"] && decision.waiting == [])

        let apart = try plan(endpoints(apple, google))
        let swapped = try plan(endpoints(google, apple.replacing(":1", with: ":9")))
        let moved = try plan(endpoints(apple.replacing(":1", with: ":9"), google))
        let back = ReloadDecision(started: apart, last: swapped, lastGorush: apart, new: moved)
        #expect(back.applied == ["gorush-endpoints"] && back.waiting == [])
        // Others are named once.
        #expect(ReloadDecision(started: apart, last: moved, new: moved).applied == [])
    }

    /// With other rules, no option of gorush applies.
    @Test func optionsOfGorushWaitWithTheRules() throws {
        let started = try plan("allow-apn-topic: a\n")
        let new = try plan("allow-apn-topic: b\ngorush: http://127.0.0.1:3\nlimit: {requests: 1/s}\n")
        let decision = ReloadDecision(started: started, last: started, new: new)
        #expect(!decision.replacesGorush && decision.applied == ["limit"] && decision.waiting == ["allow-apn-topic", "gorush"])
    }

    @Test func valuesOfAnEndpointApplyExceptConnectionsAndBatch() throws {
        let started = try plan(endpoints(apple, google))
        let moved = try plan("# a comment\n" + endpoints(apple, google))
        #expect(ReloadDecision(started: started, last: started, new: moved).applied == [])

        let token = try plan(endpoints(apple, google.replacing("}", with: ", token-file: \(folder.path)/token}")))
        let decision = ReloadDecision(started: started, last: started, new: token)
        #expect(decision.replacesGorush && decision.applied == ["gorush-endpoints"] && decision.waiting == [])

        let wider = try plan(endpoints(apple.replacing("}", with: ", connections: 5, batch: 9}"), google))
        let waiting = ReloadDecision(started: started, last: started, new: wider)
        #expect(waiting.applied == [] && waiting.waiting == ["gorush-endpoints.connections", "gorush-endpoints.batch"])
    }

    private func write(_ text: String, to name: String) throws -> String {
        let path = "\(folder.path)/\(name)"
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        return path
    }

    /// A replaced token or list applies although the configuration file is the same.
    @Test func changedContentsOfFilesAreNamed() throws {
        let denied = try write("", to: "denied")
        let text = "deny-keys: \(denied)\ngorush-token-file: \(folder.path)/token\n"
        let started = try plan(text)
        _ = try write(String(repeating: "ab", count: 64), to: "denied")
        let banned = try plan(text)
        #expect(ReloadDecision(started: started, last: started, new: banned).applied == ["deny-keys (content)"])
        #expect(ReloadDecision(started: started, last: banned, new: try plan(text)).applied == [])
        _ = try write("another secret", to: "token")
        #expect(ReloadDecision(started: started, last: banned, new: try plan(text)).applied == ["gorush-token-file (content)"])

        // Another file is a changed value, and named as such.
        let other = try write("third secret", to: "other")
        let moved = try plan("deny-keys: \(denied)\ngorush-token-file: \(other)\n")
        #expect(ReloadDecision(started: started, last: banned, new: moved).applied == ["gorush-token-file"])
    }

    /// The node runs with the former content until a restart, so each reload warns.
    @Test func changedContentsOfFilesThatNeedARestartAreNamedUntilTheyAreThoseOfTheStart() throws {
        let header = try write("Authorization: Bearer a", to: "header")
        let text = "otlp: http://127.0.0.1:1\notlp-header-file: \(header)\n"
        let started = try plan(text)
        _ = try write("Authorization: Bearer b", to: "header")
        var last = started
        for _ in 0..<2 {
            let new = try plan(text)
            let decision = ReloadDecision(started: started, last: last, new: new)
            #expect(decision.applied == [] && decision.waiting == ["otlp-header-file (content)"])
            last = new
        }
        _ = try write("Authorization: Bearer a", to: "header")
        #expect(ReloadDecision(started: started, last: last, new: try plan(text)).waiting == [])
    }

    @Test func aReplacedFeedbackSecretAppliesUnlessItWasDisabled() throws {
        func secret(_ text: String) throws -> String {
            "feedback-secret-file: \(try write(text, to: "secret"))\n"
        }
        let text = try secret("0123456789abcdef")
        let started = try plan(text)
        _ = try secret("fedcba9876543210")
        let decision = ReloadDecision(started: started, last: started, new: try plan(text))
        #expect(decision.applied == ["feedback-secret-file (content)"] && decision.waiting == [])

        let disabled = try plan("")
        let enabled = ReloadDecision(started: disabled, last: disabled, new: try plan(text))
        #expect(enabled.applied == [] && enabled.waiting == ["feedback-secret-file"])
        #expect(ReloadDecision(started: started, last: started, new: disabled).waiting == ["feedback-secret-file"])
    }

    @Test func changedContentsOfAnEndpointsFilesAreNamedUnlessTheyWait() throws {
        let text = endpoints(apple, google.replacing("}", with: ", token-file: \(folder.path)/token}"))
        let started = try plan(text)
        _ = try write("another secret", to: "token")
        let new = try plan(text)
        #expect(
            ReloadDecision(started: started, last: started, new: new).applied == ["gorush-endpoints.token-file (content)"])
        let other = try plan(endpoints(apple))
        #expect(ReloadDecision(started: other, last: started, new: new).applied == [])
    }

    /// The node keeps to the file of its start, whose contents it reads again.
    @Test func theListOfStorageServersAppliesWithoutItsName() throws {
        func nodes(_ address: String, to name: String) throws -> String {
            let key = String(repeating: "ab", count: 32)
            return try write(#"[{"pubkey_x25519":"\#(key)","ip":"\#(address)","port":22,"swarm_id":"0000000000000001"}]"#, to: name)
        }
        let onionKey = try write(String(repeating: "ab", count: 32), to: "onion.key")
        let session = "session-http: 127.0.0.1:3000\nsession-onion-key: \(onionKey)\nsession-nodes: "
        let started = try plan(session + (try nodes("192.0.2.1", to: "nodes.json")))
        let changed = try plan(session + (try nodes("192.0.2.2", to: "nodes.json")))
        let content = ReloadDecision(started: started, last: started, new: changed)
        #expect(content.applied == ["session-nodes (content)"] && content.waiting == [])
        let moved = try plan(session + (try nodes("192.0.2.2", to: "other.json")))
        let other = ReloadDecision(started: started, last: changed, new: moved)
        #expect(other.applied == [] && other.waiting == ["session-nodes"])
    }

    @Test func addedOptionsAreReloadableAsDeclared() {
        for isReloadable in [true, false] {
            let option = ProtocolOption.count("count", 1, in: 1...2, "", isReloadable: isReloadable)
            #expect(ServeOption(option.form).reload == (isReloadable ? .value : .nothing))
        }
    }
}

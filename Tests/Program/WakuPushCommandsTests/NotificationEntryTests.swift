import Delivery
import Core
import TestSupport
import Testing

@testable import WakuPushCommands

/// The section `notifications` of the configuration file.
struct NotificationEntryTests {
    private func settings(_ text: String, endpoints: [String] = ["gorush", "google"]) throws(CommandFailure) -> NotificationSettings {
        let file = try ConfigurationFile(parsing: text, path: "f.yaml", known: ["data"], lists: [])
        if let problem = file.problems.first { throw problem }
        return try NotificationSettings(file.notifications, endpoints: endpoints)
    }

    @Test(arguments: ["", "notifications:", "notifications: []", "data: d"]) func absentOrEmptyMeansNoSettings(text: String) throws {
        #expect(try settings(text) == .none)
    }

    @Test func everyKeyIsRead() throws {
        var rule = NotificationSettings.Rule()
        rule.platforms = [.apn, .firebase, .huawei]
        rule.kinds = [.message, .mention, .requestToJoinCommunity, .contactRequest, .other]
        rule.endpoints = ["google"]
        rule.protocols = ["status", "status-v0.1", "session"]
        rule.style.title = .text("T")
        rule.style.body = .localized(key: "BK")
        rule.style.sound = "ping.caf"
        rule.style.badge = 1
        rule.style.category = "CHAT"
        rule.style.channel = "messages"
        rule.style.isMutable = true
        rule.style.interruptionLevel = .timeSensitive
        rule.style.priority = .high
        rule.style.timeToLive = .seconds(5400)
        rule.style.collapse = .chat
        rule.style.thread = .chat
        rule.style.isForSandbox = false
        rule.style.deepLink = try DeepLinkTemplate(parsing: "app://{kind}/{chat}")
        rule.style.reportTag = "waku"
        let text = """
            notifications:
              - platforms: [apn, firebase, huawei]
                kinds: [message, mention, request-to-join-community, contact-request, other]
                endpoints: google
                protocols: [status, status-v0.1, session]
                title: T
                loc-key: BK
                sound: ping.caf
                badge: 1
                category: CHAT
                channel: messages
                mutable-content: true
                interruption-level: time-sensitive
                priority: high
                ttl: 90m
                collapse: chat
                thread: chat
                development: no
                deep-link: app://{kind}/{chat}
                bi-tag: waku
            """
        #expect(try settings(text).rules == [rule])
        let keys = Set(try ConfigurationFile(parsing: text, path: "f.yaml", known: [], lists: []).notifications[0].options.keys)
        // The others exclude one of these.
        #expect(Set(NotificationKey.allCases.map(\.rawValue)).subtracting(keys) == ["apps", "body", "title-loc-key"])
    }

    @Test func aSingleEntryNeedsNoList() throws {
        var rule = NotificationSettings.Rule()
        rule.style.timeToLive = .remaining
        rule.apps = ["im.status.ethereum"]
        rule.style.title = .localized(key: "K")
        rule.style.body = .text("B")
        #expect(
            try settings("notifications:\n  ttl: remaining\n  apps: [im.status.ethereum]\n  title-loc-key: K\n  body: B").rules == [rule])
    }

    @Test func webPushCollapses() throws {
        let rules = try settings("notifications:\n  - {platforms: webpush, collapse: chat}\n  - {platforms: [webpush, apn], ttl: 1h}").rules
        #expect(rules[0].platforms == [.webPush] && rules[0].style.collapse == .chat)
        #expect(rules[1].platforms == [.webPush, .apn])
        // A rule for Web Push alone discloses nothing to Apple and Google.
        #expect(NotificationSettings(rules).rules(forEndpoint: "gorush").rules == [rules[1]])
    }

    @Test func emptyTextsAndZeroAreSettings() throws {
        let rules = try settings("notifications:\n  - {sound: '', deep-link: '', title: '', ttl: 0}\n  - {platforms: firebase, body: ''}")
            .rules
        #expect(rules[0].style.sound == "" && rules[0].style.title == .text("") && rules[0].style.deepLink == DeepLinkTemplate(""))
        #expect(rules[0].style.timeToLive == .seconds(0))
        #expect(rules[1].style.body == .text(""))
    }

    static let problems = [
        ("notifications: high", ":1: an entry of notifications must consist of lines \"key: value\""),
        ("notifications:\n  - priority: high\n    loc_key: K", ":3: there is no option loc_key: did you mean loc-key?"),
        (
            "notifications:\n  - xyzzyxyzzy: 1",
            ":2: there is no option xyzzyxyzzy: an entry of notifications has apps, badge, bi-tag, body,"
        ),
        ("notifications:\n  - title: {en: A}", ":2: the value of title must be plain, or a list"),
        ("notifications:\n  - title: [a, b]", ":2: title must be one value, not a list"),
        (
            "notifications:\n  - kinds: [message]",
            ":2: this entry of notifications sets nothing: add a setting such as priority, or remove it"
        ),
        ("notifications:\n  - platforms: [ios]\n    priority: high", ":2: platforms has an unknown name, ios: use apn, firebase, huawei"),
        ("notifications:\n  - platforms: []\n    priority: high", ":2: platforms is empty: name some, or remove it to select all"),
        (
            "notifications:\n  - priority: high\n    kinds: [chat]",
            ":3: kinds has an unknown name, chat: use message, mention, request-to-join-community, contact-request, other"
        ),
        ("notifications:\n  - {endpoints: apple, ttl: 1h}", ":2: endpoints has an unknown name, apple: use gorush, google"),
        ("notifications:\n  - {protocols: waku, ttl: 1h}", ":2: protocols has an unknown name, waku: use status, status-v0.1, session"),
        ("notifications:\n  - priority: urgent", ":2: priority can't be urgent: use high, normal"),
        (
            "notifications:\n  - interruption-level: high",
            ":2: interruption-level can't be high: use passive, active, time-sensitive, critical"
        ),
        ("notifications:\n  - collapse: app", ":2: collapse can't be app: use none, message, chat"),
        ("notifications:\n  - thread: message", ":2: thread can't be message: use none, chat"),
        ("notifications:\n  - badge: many", ":2: badge must be from 0 to 9999"),
        ("notifications:\n  - badge: -1", ":2: badge must be from 0 to 9999"),
        ("notifications:\n  - mutable-content: perhaps", ":2: mutable-content must be true or false"),
        ("notifications:\n  - ttl: soon", ":2: ttl must be remaining, 0, or whole seconds up to 28 days"),
        ("notifications:\n  - ttl: 29d", ":2: ttl must be remaining, 0, or whole seconds up to 28 days"),
        ("notifications:\n  - ttl: 1500ms", ":2: ttl must be remaining, 0, or whole seconds up to 28 days"),
        ("notifications:\n  - {body: a, loc-key: b}", ":2: loc-key and body are mutually exclusive: remove one of them"),
        ("notifications:\n  - {title: a, title-loc-key: b}", ":2: title-loc-key and title are mutually exclusive: remove one of them"),
        ("notifications:\n  - loc-key: ''", ":2: loc-key is empty: give a key of the app's string resources"),
        ("notifications:\n  - title: \"a\\nb\"", ":2: title has control characters: remove them"),
        ("notifications:\n  - title: \(String(repeating: "a", count: 501))", ":2: title is longer than 500 bytes: shorten it"),
        ("notifications:\n  - deep-link: 'a:{who}'", ":2: deep-link has an unknown placeholder {who}: use {kind} or {chat}"),
        (
            "notifications:\n  - deep-link: 'a:{kind'",
            ":2: deep-link has a brace without its counterpart: placeholders are {kind} and {chat}"
        ),
        ("notifications:\n  - deep-link: a b", ":2: deep-link has spaces: write them as %20"),
        (
            "notifications:\n  - platforms: [firebase]\n    badge: 1",
            ":3: badge has an effect only on apn: remove it, or change what the entry is for"
        ),
        (
            "notifications:\n  - platforms: [webpush]\n    ttl: 1h",
            ":3: ttl has an effect only on apn and firebase and huawei: remove it, or change what the entry is for"
        ),
        (
            "notifications:\n  - platforms: [webpush]\n    endpoints: google\n    collapse: chat",
            ":3: endpoints are gorush servers, and this entry is only for webpush: remove them"
        ),
        ("notifications:\n  - apps: [a]\n    channel: c", ":3: channel has an effect only on firebase and huawei: remove it"),
        (
            "notifications:\n  - platforms: [firebase]\n    apps: [a]\n    ttl: 1h",
            ":3: apps are APNs topics, and this entry is not for apn"
        ),
        ("notifications:\n  - body: ''", ":2: body may be empty only with platforms: [firebase], or huawei"),
        (
            "notifications:\n  - protocols: [session]\n    title: T",
            ":3: title does not apply to session, whose notifications are fixed: only ttl, collapse and bi-tag do"
        ),
        ("notifications:\n  - protocols: [session]\n    collapse: chat", ":3: collapse can't be chat for session"),
    ]

    @Test(arguments: problems) func anErrorNamesItsLineAndItsRemedy(text: String, message: String) {
        let failure = #expect(throws: CommandFailure.self) { try settings(text) }
        #expect(failure?.code == .data)
        #expect(failure?.message.hasPrefix("f.yaml" + message) == true, "\(failure?.message ?? "")")
        #expect(failure?.message.contains("\n") == false)
    }

    @Test func entriesAreLimited() throws {
        func text(_ count: Int) -> String { "notifications:\n" + String(repeating: "  - badge: 1\n", count: count) }
        #expect(try settings(text(100)).rules.count == 100)
        let failure = #expect(throws: CommandFailure.self) { try settings(text(101)) }
        #expect(failure?.message == "f.yaml:102: at most 100 entries are allowed in notifications")
    }
}

/// The section as commands use it.
@Suite(.timeLimit(.minutes(5)))
struct NotificationCommandTests {
    private let folder: TemporaryFolder
    private let key: KeyFile
    private var path: String { folder.path + "/waku-push.yaml" }

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
        try write("token-1\n", to: folder.path + "/token")
    }

    private func preview(_ text: String, _ arguments: String...) async throws -> Ended {
        try write(text, to: path)
        return try await run(
            ["admin", "test-push", "--config", path, "--token-file", folder.path + "/token", "--preview"] + arguments)
    }

    @Test func checkNamesTheLineOfAnError() async throws {
        try write("data: d\nnotifications:\n  - platforms: [firebase]\n    priority: hgih\n", to: path)
        let ended = try await run("config", "check", "--config", path, "--identity", key.path)
        #expect(ended.status == 65)
        #expect(ended.failure == "\(path):4: priority can't be hgih: use high, normal")
        #expect(ended.errors.split(separator: "\n").count == 1)
    }

    @Test func theExampleOfConfigDefaultIsValid() async throws {
        let lines = try await run("config", "default").output.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex(of: "#notifications:"))
        let example = lines[start...].prefix { $0.hasPrefix("#") }.map { $0.dropFirst() }
        #expect(example.count == 10)
        try write(example.joined(separator: "\n"), to: path)
        let ended = try await run("config", "check", "--config", path, "--identity", key.path)
        #expect(ended.status == 0, "\(ended.errors)")
    }

    @Test func showPrintsEachSettingWithItsLine() async throws {
        try write("notifications:\n  - ttl: remaining\n  - platforms: [apn, firebase]\n    priority: high\n", to: path)
        let output = try await run("config", "show", "--config", path).output
        for line in ["notifications[0] ttl  remaining  \(path):2", "notifications[1] platforms  apn, firebase  \(path):3"] {
            let words = line.split(separator: " ")
            #expect(output.split(separator: "\n").contains { $0.split(separator: " ") == words }, "\(output)")
        }
    }

    /// Nothing listens at this address: whatever connected to it would fail.
    private static let nobody = "gorush: http://127.0.0.1:1\n"

    @Test func previewPrintsTheBodyAndPostsNothing() async throws {
        let ended = try await preview(
            Self.nobody + "notifications:\n  - {platforms: firebase, kinds: mention, priority: high, body: B, collapse: none}",
            "--platform", "firebase", "--kind", "mention", "--payload-profile", "rfc")
        #expect(ended.status == 0, "\(ended.errors)")
        let expected =
            #/\{"notifications":\[\{"notif_id":"test-[0-9a-f]{24}","tokens":\["<redacted>"\],"platform":2,"message":"B","priority":"high","android":\{"priority":"high"\},"data":\{"chat_id":"0x[0-9a-f]{128}","message":"0x","installation_ids":\["test"\]\}\}\]\}\n/#
        #expect(try expected.wholeMatch(in: ended.output) != nil, "\(ended.output)")
        let other = try await preview(
            Self.nobody + "notifications:\n  - {platforms: firebase, kinds: mention, priority: high}", "--platform", "firebase")
        #expect(!other.output.contains("priority"))
    }

    @Test func previewKnowsTheEndpointAndTheSandbox() async throws {
        let text = """
            gorush-endpoints:
              - {name: apple, url: "http://127.0.0.1:1", platforms: [apn], apn-sandbox-topics: [im.status.pr]}
              - {name: google, url: "http://127.0.0.1:1", payload-profile: rfc}
            notifications:
              - {endpoints: apple, sound: apple.caf}
              - {endpoints: google, sound: google.ogg, ttl: remaining}
            max-request-age: 2m
            """
        let apple = try await preview(text, "--platform", "apn", "--apn-topic", "im.status.pr").output
        #expect(apple.contains(#""development":true"#) && apple.contains(#""sound":"apple.caf""#))
        let google = try await preview(text, "--platform", "firebase").output
        #expect(google.contains(#""sound":"google.ogg""#) && google.contains(#""time_to_live":120"#) && !google.contains("publicKey"))
        let huawei = try await preview(text, "--platform", "huawei").output
        #expect(huawei.contains(#""platform":3"#) && huawei.contains(#""huawei_ttl":"120s""#))
    }

    @Test func previewShowsTheTokenOnlyOnRequest() async throws {
        let shown = try await preview("", "--platform", "firebase", "--reveal")
        #expect(shown.output.contains(#""tokens":["token-1"]"#))
        try write("", to: path)
        let refused = try await run(
            "admin", "test-push", "--config", path, "--token-file", folder.path + "/token", "--platform", "firebase", "--reveal")
        #expect(refused.status == 64 && refused.failure == "--reveal needs --preview")
    }

    @Test func previewRefusesWhatCheckRefuses() async throws {
        let ended = try await preview("notifications:\n  - ttl: never", "--platform", "firebase")
        #expect(ended.status == 65 && ended.failure?.hasPrefix("\(path):2: ttl must be") == true && ended.output.isEmpty)
    }
}

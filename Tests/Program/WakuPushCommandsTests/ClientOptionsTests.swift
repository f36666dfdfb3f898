import ArgumentParser
import PushClient
import TestSupport
import Testing
import WakuCrypto

@testable import WakuPushCommands

/// Options that the commands of `waku-push client` have in common.
struct ClientOptionsTests {
    @Test(arguments: [["client", "register"], ["client", "v0.1", "register"]])
    func defaultsAreShownAsTheyAreGiven(_ command: [String]) async throws {
        let help = try await run(command + ["--help"]).output
        #expect(help.contains("default: apn") && !help.contains("default: 1)"))
    }

    @Test func theTimeoutIsShownWithItsFormAndDefault() async throws {
        let help = try await run(["client", "query", "--help"], environment: ["WAKU_PUSH_TIMEOUT": "7s"]).output
        let words = help.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(words.contains("How long to wait for answers, such as 500ms, 10s or 2m. [default: 7s]"), "\(help)")
    }

    @Test(arguments: [(1, 1), (99, 99), (101, 200), (1000, 1000), (9_951, 10_000), (-5, 0)])
    func shortTimeoutsAreNotExtended(milliseconds: Int, rounded: Int) {
        #expect(Duration.milliseconds(milliseconds).roundedUp == .milliseconds(rounded))
    }

    @Test(arguments: [(-601, "601 s ahead of"), (21, "21 s behind"), (20, nil), (-20, nil)] as [(Int, String?)])
    func aClockOfWhichMessagesAreDroppedIsNamed(nodeAhead seconds: Int, difference: String?) {
        let text = difference.map { "this machine's clock is \($0) that of the Waku node: synchronise it by NTP" }
        #expect(ClientRelays.wrongClock(nodeAhead: .seconds(seconds)) == text)
    }

    @Test(arguments: [["client", "status"], ["client", "v0.1", "status"]])
    func statusTakesTheOptionsOfTheOtherCommands(_ command: [String]) async throws {
        let folder = try TemporaryFolder()
        let ended = try await run(command + ["--state", folder.path, "--relay", "http://127.0.0.1:1", "--timeout", "1s", "--json"])
        #expect(ended.status == 65 && ended.failure?.contains("holds no client") == true, "\(ended.errors)")
    }

    /// As the argument or by an option; never both or none.
    @Test(arguments: [
        ["client", "query", "--server", "KEY"], ["client", "notify", "--server", "KEY"], ["client", "discover", "--state", "FOLDER"],
        ["client", "v0.1", "query"], ["client", "v0.1", "notify"],
    ])
    func registrantsAreNamedInTheSameWay(_ command: [String]) async throws {
        let folder = try TemporaryFolder()
        let key = try KeyFile(in: folder, "bob.key").publicKey
        let command = command.map { $0 == "KEY" ? key : $0 == "FOLDER" ? folder.path : $0 } + ["--relay", "not-a-url"]
        for registrant in [[key], ["--registrant", key]] {
            #expect(try await run(command + registrant).failure?.contains("is not an http or https URL") == true)
        }
        #expect(try await run(command).errors.contains("Missing expected argument '<key>'"))
        #expect(try await run(command + [key, "--registrant", key]).errors.contains("Give the registrant once"))
    }

    /// Variables of a daemon, as in its container.
    @Test func variablesOfServeAreUnderstood() async throws {
        let environment = [
            "WAKU_PUSH_PUBSUB_TOPIC": "/waku/2/rs/16/1, /waku/2/rs/16/2", "WAKU_PUSH_RELAY": "loopback", "WAKU_PUSH_TIMEOUT": "3s",
        ]
        let (options, unknown) = try withEnvironment(environment) { (try ClientOptions.parse([]), Environment.unknownVariables) }
        #expect(options.pubsubTopic == "/waku/2/rs/16/1" && options.relays.isEmpty && options.timeout.duration == .seconds(3))
        #expect(unknown.isEmpty)
        let others = try withEnvironment(["WAKU_PUSH_RELAY": "loopback,http://127.0.0.1:1"]) { try ClientOptions.parse([]) }
        #expect(others.relays == ["http://127.0.0.1:1"])
    }

    // MARK: Lists in files

    private let device = ["--device-token", "t"]

    @Test func filesAddToTheListsOfTheOptions() throws {
        let folder = try TemporaryFolder()
        let keys = (0..<3).map { _ in PrivateKey.generate().publicKey }
        let (contacts, chats) = (folder.path + "/contacts", folder.path + "/chats")
        try write("\u{FEFF}# friends\n\n0x\(keys[0].hex)\r\n  \(keys[1].hex) # Bob\n", to: contacts)
        // Ids of chats may contain #.
        try write("\u{FEFF}@profile\nroom#1 # the first\n", to: chats)
        let lists = [
            "--contacts-only", "--contact", keys[2].hex, "--contact-file", contacts, "--block-chat", "work", "--block-chat-file", chats,
        ]
        let others = ["--mute-chat-file", chats, "--mentions-in-file", chats, "--block-author-file", contacts]
        let profile = try withEnvironment([:]) { try DevicePreferencesOptions.parse(device + lists + others).profile() }
        #expect(profile.contacts == Set(keys) && profile.blockedChats == ["work", "@profile", "room#1"])
        #expect(profile.mutedChats == ["@profile", "room#1"] && profile.mentionChats == ["@profile", "room#1"])
        #expect(profile.blockedAuthors == Set(keys.prefix(2)))
        let v01 = try withEnvironment([:]) { try V01DeviceOptions.parse(device + lists).profile() }
        #expect(v01.contacts == Set(keys) && v01.blockedChats == ["work", "@profile", "room#1"])
    }

    @Test(arguments: [["client", "register"], ["client", "v0.1", "register"]])
    func unusableListsAreNamedWithTheirLine(_ command: [String]) async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/contacts"
        let command = command + device + ["--state", folder.path + "/bob", "--contacts-only", "--contact-file"]
        try write("\(PrivateKey.generate().publicKey.hex)\nnonsense\n", to: path)
        let ended = try await run(command + [path])
        #expect(ended.status == 65 && ended.failure == "\(path):2: not a public key in hexadecimal digits", "\(ended.errors)")
        let missing = try await run(command + [path + "-2"])
        #expect(missing.status == 65 && missing.failure?.hasPrefix("list of keys \(path)-2 can't be read") == true, "\(missing.errors)")
        let twice = try await run(command + ["-", "--block-chat-file", "-"])
        #expect(twice.status == 64 && twice.failure?.hasPrefix("Standard input (-) can be read for one option only") == true)
        let ignored = try await run(command.filter { $0 != "--contacts-only" } + [path])
        #expect(ignored.status == 64 && ignored.failure?.hasPrefix("--contact-file is for --contacts-only") == true, "\(ignored.errors)")
    }
}

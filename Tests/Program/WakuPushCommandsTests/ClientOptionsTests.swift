import TestSupport
import Testing

/// Options that the commands of `waku-push client` have in common.
struct ClientOptionsTests {
    @Test(arguments: [["client", "register"], ["client", "v0.1", "register"]])
    func defaultsAreShownAsTheyAreGiven(_ command: [String]) async throws {
        let help = try await run(command + ["--help"]).output
        #expect(help.contains("default: apn") && !help.contains("default: 1)"))
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
}

import ArgumentParser
import SessionProtocol
import SessionServer

struct SessionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Creates and shows keys of Session's push server (serve --session-http).",
        subcommands: [Key.self])

    struct Key: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "The key for onion requests, to which clients encrypt.", subcommands: [New.self, Show.self])
    }
}

extension SessionCommand.Key {
    struct New: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates a key in a file with mode 0600, and prints its public half.",
            discussion: "EXAMPLE\n  waku-push session key new --out onion.key")

        @Option(help: "The file to create. It must not exist.")
        var out: String

        @Flag(help: "Print JSON.")
        var json = false

        func execute() async throws {
            try OnionKeyOverview(publicKey: OnionKeyFile.create(out, Sodium.load()).publicKeyHex).print(asJSON: json)
        }
    }

    struct Show: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows the public half of a key.", discussion: "EXAMPLE\n  waku-push session key show --key onion.key")

        @Option(help: "The key file.")
        var key: String = Settings.sessionOnionKey.value(nil) ?? "onion.key"

        @Flag(help: "Print JSON.")
        var json = false

        func execute() async throws {
            try OnionKeyOverview(publicKey: OnionKeyFile.read(key, Sodium.load()).publicKeyHex).print(asJSON: json)
        }
    }
}

private struct OnionKeyOverview: FieldsReport {
    let publicKey: String

    var fields: [(String, String)] { [("public key", publicKey)] }
}

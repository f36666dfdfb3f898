import ArgumentParser
import Foundation
import StatusGoImport
import StatusProtocol
import Core
import Waku
import WakuCrypto

struct IdentityCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "identity", abstract: "Creates, imports and shows the identity key of a node or client.",
        subcommands: [New.self, NewVAPID.self, Import.self, Show.self])

    struct New: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates a key in a file with mode 0600.",
            discussion: "EXAMPLE\n  waku-push identity new --out id.key")

        @Option(help: "The file to create. It must not exist.")
        var out: String

        @OptionGroup var form: KeyFormOptions

        func execute() async throws {
            let key = PrivateKey.generate()
            try IdentityFile.write(key, to: out)
            if form.publicKey { return Output.line(key.publicKey.text) }
            try IdentityOverview(key.publicKey).print(asJSON: form.json)
        }
    }

    struct Import: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Imports a key from a file of hexadecimal digits, as status-go and go-ethereum write.",
            discussion: """
                The file may have 0x before the 64 digits, and any mode. The key is written to another file, with mode 0600.

                EXAMPLE
                  waku-push identity import nodekey --out id.key
                """)

        @Argument(help: "A file with 64 hexadecimal digits.")
        var file: String

        @Option(help: "The file to create. It must not exist.")
        var out: String

        @Flag(help: "Print JSON.")
        var json = false

        func execute() async throws {
            guard let handle = FileHandle(forReadingAtPath: file), let content = try? handle.read(upToCount: 1_024) else {
                throw CommandFailure(.data, "\(file) can't be read: is it there, and may this user read it?")
            }
            let text = String(decoding: content, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
            guard let key = PrivateKey(hexText: text) else {
                throw CommandFailure(.data, "\(file) does not contain a secp256k1 key of 64 hexadecimal digits")
            }
            try IdentityFile.write(key, to: out)
            try IdentityOverview(key.publicKey).print(asJSON: json)
        }
    }

    struct Show: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows the public key, its hash and its topics.",
            discussion: "EXAMPLES\n  waku-push identity show --identity id.key\n  waku-push identity show --identity id.key --public-key")

        @Option(help: "The key file.")
        var identity: String = Environment.list("identity").first ?? "id.key"

        @OptionGroup var form: KeyFormOptions

        @Option(help: "Show the public half of this VAPID key file instead.")
        var webPushKey: String?

        func execute() async throws {
            if let webPushKey {
                let key = try VAPIDKeyFile.read(webPushKey).publicKey
                if form.publicKey { return Output.line(key) }
                return try VAPIDOverview(publicKey: key).print(asJSON: form.json)
            }
            let key = try IdentityFile.read(identity).publicKey
            if form.publicKey { return Output.line(key.text) }
            try IdentityOverview(key).print(asJSON: form.json)
        }
    }
}

/// How a key is printed.
struct KeyFormOptions: ParsableArguments {
    @Flag(help: "Print JSON.")
    var json = false

    @Flag(help: "Print the public key alone.")
    var publicKey = false

    func validate() throws {
        if publicKey, json { throw ValidationError("give one of --json and --public-key") }
    }
}

/// The public key of an identity, its hash and its topics.
struct IdentityOverview: FieldsReport {
    let publicKey: String
    let compressedPublicKey: String
    let keyHash: String
    let personalTopic: String
    let partitionedTopic: String

    init(_ key: PublicKey) {
        publicKey = key.text
        compressedPublicKey = "0x" + hexString(key.compressed)
        keyHash = KeyHash(of: key).hex
        personalTopic = ContentTopic(TopicTag(of: StatusTopics.personal(key))).rawValue
        partitionedTopic = ContentTopic(TopicTag(of: StatusTopics.partitioned(key))).rawValue
    }

    var fields: [(String, String)] {
        [
            ("public key", publicKey), ("compressed", compressedPublicKey), ("key hash", keyHash),
            ("personal topic", personalTopic), ("partitioned topic", partitionedTopic),
        ]
    }
}

extension IdentityCommand {
    struct NewVAPID: ReportingCommand {
        static let configuration = CommandConfiguration(
            commandName: "new-vapid", abstract: "Creates a key for Web Push in a file with mode 0600.",
            discussion: """
                Push services know a node by this key, and clients need its public half, which this prints, before they subscribe: as the \
                applicationServerKey of a browser, or the vapid of a UnifiedPush connector.

                EXAMPLE
                  waku-push identity new-vapid --out vapid.key
                """)

        @Option(help: "The file to create. It must not exist.")
        var out: String

        @OptionGroup var form: KeyFormOptions

        func execute() async throws {
            let key = try VAPIDKeyFile.create(out).publicKey
            if form.publicKey { return Output.line(key) }
            try VAPIDOverview(publicKey: key).print(asJSON: form.json)
        }
    }
}

/// The public half of a VAPID key.
struct VAPIDOverview: FieldsReport {
    let publicKey: String

    var fields: [(String, String)] { [("VAPID public key", publicKey)] }
}

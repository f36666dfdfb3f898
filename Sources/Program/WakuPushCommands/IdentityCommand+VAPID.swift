import ArgumentParser
import Core

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

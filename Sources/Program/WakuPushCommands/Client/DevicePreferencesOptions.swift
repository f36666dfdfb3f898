import ArgumentParser
import PushClient
import Core

/// A device and its user's preferences for notifications.
struct DevicePreferencesOptions: ParsableArguments {
    @Option(help: "apn or firebase.") var platform: PlatformArgument = .apn
    @Option(help: "The device token of APNs or Firebase.") var deviceToken: String?
    @Option(
        help:
            "File with a Web Push subscription instead of --device-token, the JSON that browsers make; - for standard input. Each --server needs its vapid."
    )
    var webPush: String?
    @Option(help: "The app, for APNs.") var apnTopic = ""
    @OptionGroup var blocked: BlockedChatOptions
    @Option(help: "The id of a chat whose messages do not notify; mentions follow --mentions-in. Repeat it for several.")
    var muteChat: [String] = []
    @Option(help: "File with more of them, as for --block-chat-file.") var muteChatFile: String?
    @Option(help: "The public key of an author who never notifies; repeat it for several.", transform: PublicKeyArgument.parse)
    var blockAuthor: [PublicKeyArgument] = []
    @Option(help: "File with more of them, as for --contact-file.") var blockAuthorFile: String?
    @OptionGroup var contacts: ContactOptions
    @Option(help: "The id of a chat whose mentions notify; those in other chats do not. Repeat it for several.")
    var mentionsIn: [String] = []
    @Option(help: "File with more of them, as for --block-chat-file.") var mentionsInFile: String?
    @Flag(help: "No mention notifies.") var noMentions = false
    @Flag(help: "Register, but want no notifications.") var disabled = false

    func validate() throws {
        guard (deviceToken == nil) != (webPush == nil) else { throw ValidationError("Give one of --device-token and --web-push") }
        try requireToken(deviceToken)
        guard webPush == nil || apnTopic.isEmpty else { throw ValidationError("--apn-topic is for APNs, not for --web-push") }
        try validateStandardInput([webPush, blocked.blockChatFile, muteChatFile, blockAuthorFile, contacts.contactFile, mentionsInFile])
    }

    /// The device without preferences.
    ///
    /// - Throws: ``CommandFailure`` when the file has no subscription.
    private func device() throws(CommandFailure) -> DeviceProfile {
        if let deviceToken { return DeviceProfile(platform: platform.platform, deviceToken: DeviceToken(deviceToken), apnTopic: apnTopic) }
        return DeviceProfile(webPush: try PushSubscription(file: webPush ?? "-"))
    }

    /// - Throws: ``CommandFailure`` for a device of APNs without an app, which servers refuse.
    func requireApp() throws(CommandFailure) {
        guard deviceToken == nil || platform.platform != .apn || !apnTopic.isEmpty else {
            throw CommandFailure(.usage, "--apn-topic is missing: APNs needs the id of the app, such as im.status.ethereum")
        }
    }

    func profile() throws(CommandFailure) -> DeviceProfile {
        var profile = try device()
        profile.isEnabled = !disabled
        profile.blockedChats = Set(try blocked.chats())
        profile.mutedChats = Set(try muteChat + muteChatFile.chats())
        profile.blockedAuthors = Set(try blockAuthor.map(\.key) + blockAuthorFile.keys())
        profile.contactsOnly = contacts.contactsOnly
        profile.contacts = Set(try contacts.keys())
        profile.mentionChats = Set(try mentionsIn + mentionsInFile.chats())
        profile.blockMentions = noMentions
        return profile
    }
}

struct BlockedChatOptions: ParsableArguments {
    @Option(help: "The id of a chat that never notifies; repeat it for several.") var blockChat: [String] = []
    @Option(help: "File with ids of more such chats, one per line, # begins a comment; - for standard input.") var blockChatFile: String?

    func chats() throws(CommandFailure) -> [String] { try blockChat + blockChatFile.chats() }
}

struct ContactOptions: ParsableArguments {
    @Flag(help: "Only contacts may notify.") var contactsOnly = false
    @Option(help: "The public key of a contact, for --contacts-only; repeat it for several.", transform: PublicKeyArgument.parse)
    var contact: [PublicKeyArgument] = []
    @Option(help: "File with public keys of more contacts, one per line, # begins a comment; - for standard input.")
    var contactFile: String?

    /// - Throws: `ValidationError` for contacts that would be ignored.
    func validate() throws {
        guard contactsOnly || contact.isEmpty && contactFile == nil else {
            let option = contact.isEmpty ? "--contact-file" : "--contact"
            throw ValidationError("\(option) is for --contacts-only: without it everybody may notify")
        }
    }

    func keys() throws(CommandFailure) -> [PublicKey] { try contact.map(\.key) + contactFile.keys() }
}

/// - Throws: `ValidationError` for an empty token, such as that of a variable that is not set.
func requireToken(_ token: String?) throws {
    if token?.isEmpty == true { throw ValidationError("--device-token is empty: give the token of APNs or Firebase") }
}

/// - Throws: `ValidationError` when more than one of these files is standard input.
func validateStandardInput(_ files: [String?]) throws {
    guard files.filter({ $0 == "-" }).count < 2 else { throw ValidationError("Standard input (-) can be read for one option only") }
}

/// A file of one of the list options.
extension String? {
    fileprivate func chats() throws(CommandFailure) -> [String] {
        guard let path = self else { return [] }
        return try ListFile(kind: "list of chats", path: path, mayBeStandardInput: true).entries("the id of a chat") { $0 }
    }

    fileprivate func keys() throws(CommandFailure) -> [PublicKey] {
        guard let path = self else { return [] }
        return try ListFile(kind: "list of keys", path: path, mayBeStandardInput: true).entries("a public key in hexadecimal digits") {
            PublicKeyArgument(argument: $0)?.key
        }
    }
}

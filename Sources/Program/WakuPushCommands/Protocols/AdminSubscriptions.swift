import PushNode
import ArgumentParser
import Foundation
import Core
import SessionProtocol
import SessionServer
import Storage
import WakuCrypto

extension Admin {
    /// Subscriptions of Session. For Status see ``Registrations``.
    struct Subscriptions: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists, shows and counts the subscriptions of Session's push server.",
            discussion: "admin registrations export and import include them.", subcommands: [List.self, Show.self, Stats.self])
    }
}

/// Selects subscriptions.
struct SubscriptionFilterOptions: ParsableArguments {
    @Option(help: "apns, apns-sandbox, firebase, huawei or webpush.") var service: PushServiceArgument?
    @Option(help: "Signed longer ago than this, for example 10d.", transform: DurationArgument.parse) var olderThan: DurationArgument?
    @Option(help: "Signed within this time, for example 24h.", transform: DurationArgument.parse) var newerThan: DurationArgument?

    func filter() -> SubscriptionFilter {
        var filter = SubscriptionFilter()
        let now = Int64(Date().timeIntervalSince1970)
        filter.service = service?.service
        filter.signedBefore = olderThan.map { now - $0.duration.components.seconds }
        filter.signedSince = newerThan.map { now - $0.duration.components.seconds }
        return filter
    }
}

struct PushServiceArgument: ExpressibleByArgument {
    let service: PushService

    init?(argument: String) {
        guard let service = PushService(rawValue: argument) else { return nil }
        self.service = service
    }

    static var allValueStrings: [String] { PushService.allCases.map(\.rawValue) }
}

extension Admin.Subscriptions {
    struct List: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists subscriptions, oldest first.",
            discussion: """
                With the node's key (--identity) the accounts are decrypted; without it keyed hashes stand for them.

                EXAMPLES
                  waku-push admin subscriptions list --data data --identity id.key
                  waku-push admin subscriptions list --data data --service firebase --newer-than 24h
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @OptionGroup var filter: SubscriptionFilterOptions
        @OptionGroup var page: PageOptions

        func execute() async throws {
            let isOpened = admin.identityFile != nil
            let store = try await openStore(unsealing: isOpened)
            var rows: [SubscriptionRow] = []
            var left = page.offset
            try SessionServer.Subscriptions.forEach(filter.filter(), in: store) { summary in
                guard left == 0 else {
                    left -= 1
                    return true
                }
                let record = isOpened ? try? SessionServer.Subscriptions(store.sealer).open(summary) : nil
                rows.append(SubscriptionRow(summary, record))
                return rows.count < page.limit.oneMore
            }
            rows = rows.limited(to: page.limit, offset: page.offset)
            if admin.json { return try Output.json(rows) }
            Output.table(
                ["ACCOUNT", "SERVICE", "SIGNED", "EXPIRES"],
                rows.map { [$0.account ?? String($0.accountHash.prefix(16)) + "…", $0.service, $0.signed, $0.expires] })
        }
    }

    struct Show: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows the subscriptions of an account.",
            discussion: """
                Needs the node's key (--identity). Tokens are hidden unless --reveal is given.

                EXAMPLE
                  waku-push admin subscriptions show 05… --data data --identity id.key
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "The pubkey: 66 hexadecimal digits.") var pubkey: String
        @Flag(help: "Show tokens.") var reveal = false

        func execute() async throws {
            guard let account = bytes(hex: pubkey).flatMap({ AccountID($0) }) else {
                throw CommandFailure(.usage, "the pubkey must have 66 hexadecimal digits")
            }
            let store = try await openStore(unsealing: true)
            let subscriptions = SessionServer.Subscriptions(store.sealer)
            let found = try store.read(SessionServer.Subscriptions.ofAccount(subscriptions.accountHash(account)))
            guard !found.isEmpty else { throw CommandFailure(.data, "no subscription of this account") }
            if reveal { try await audited(.subscriptionsReveal) {} }
            let details = found.map { SubscriptionDetail($0, try? subscriptions.open($0), reveal: reveal) }
            try Output.fields(details, asJSON: admin.json)
        }
    }

    struct Stats: AdminCommand {
        static let configuration = CommandConfiguration(abstract: "Prints numbers of accounts and of devices by service.")

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions

        func execute() async throws {
            let store = try await openStore()
            let figures = try store.read(SessionServer.Subscriptions.figures(at: Int64(Date().timeIntervalSince1970)))
            try SubscriptionNumbers(figures).print(asJSON: admin.json)
        }
    }
}

private struct SubscriptionRow: Encodable {
    /// nil without the node's key, and when the row can't be decrypted.
    let account: String?
    let accountHash: String
    let service: String
    let signed: String
    let expires: String

    init(_ summary: SubscriptionSummary, _ record: SubscriptionRecord?) {
        account = record?.authority.account.hex
        accountHash = hexString(summary.accountHash)
        service = summary.service.rawValue
        signed = Date(timeIntervalSince1970: TimeInterval(summary.signedAt)).formatted(.iso8601)
        expires = Date(timeIntervalSince1970: TimeInterval(summary.expiresAt)).formatted(.iso8601)
    }
}

private struct SubscriptionDetail: FieldsReport {
    let row: SubscriptionRow
    let opened: Opened?

    struct Opened: Encodable {
        let namespaces: [Int16]
        let wantsData: Bool
        /// `account`, `subaccount` or `subkey`.
        let signedBy: String
        let deviceToken: String?
    }

    init(_ summary: SubscriptionSummary, _ record: SubscriptionRecord?, reveal: Bool) {
        row = SubscriptionRow(summary, record)
        opened = record.map { record in
            let signer =
                switch record.authority.delegation {
                case .none: "account"
                case .subaccount: "subaccount"
                case .subkey: "subkey"
                }
            return Opened(
                namespaces: record.namespaces, wantsData: record.wantsData, signedBy: signer,
                deviceToken: reveal ? record.token.value : nil)
        }
    }

    var fields: [(String, String)] {
        let fields = [
            ("account", row.account ?? "can't be decrypted"), ("account hash", row.accountHash), ("service", row.service),
            ("signed", row.signed), ("expires", row.expires),
        ]
        guard let opened else { return fields }
        return fields + [
            ("namespaces", opened.namespaces.map(String.init).joined(separator: ", ")),
            ("data", opened.wantsData ? "wanted" : "not wanted"),
            ("signed by", opened.signedBy), ("device token", opened.deviceToken ?? Output.hidden),
        ]
    }
}

private struct SubscriptionNumbers: FieldsReport {
    let accounts: Int
    let devices: [String: Int]
    let inDoubt: Int
    let endedNames: Int

    init(_ figures: SubscriptionFigures) {
        accounts = figures.accounts
        devices = Dictionary(uniqueKeysWithValues: PushService.allCases.map { ($0.rawValue, figures.services[$0] ?? 0) })
        inDoubt = figures.inDoubt.values.reduce(0, +)
        endedNames = figures.leftNames
    }

    var fields: [(String, String)] {
        [("accounts", String(accounts))] + PushService.allCases.map { ($0.rawValue, String(devices[$0.rawValue] ?? 0)) }
            + [("token in doubt", String(inDoubt)), ("names of ended ones", String(endedNames))]
    }
}

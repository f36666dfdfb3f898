import NIOSupport
import ArgumentParser
import Core
import Foundation
import NodeAPI
import PushReceiver
import PushReceiverHTTP
import Synchronization
import UnixSignals

extension Client {
    struct Listen: ReportingCommand {
        static let configuration = CommandConfiguration(
            abstract: "Receives Web Push notifications: makes a subscription, decrypts and prints what arrives.",
            discussion: """
                Listens with https on an address of this machine, with a certificate of an authority that it creates; the printed options make \
                the node trust that authority. With --public-url, listens with plain HTTP behind a proxy instead. Runs until SIGINT or SIGTERM.

                DIR keeps the subscription's keys and the file for client register --web-push: the next start receives for the same \
                subscription. One process uses it at a time. With --vapid, messages of other servers are refused.

                Events are prepared, listening, notification and refused, a line each.

                EXAMPLES
                  waku-push client listen --folder desktop --vapid BN… --prepare
                  waku-push client listen --folder desktop --json
                  waku-push client listen --folder bot --listen 127.0.0.1:8081 \\
                    --public-url https://push.example/bot
                """)

        @Option(help: ArgumentHelp("The receiver's folder. Made if it is missing.", valueName: "dir"))
        var folder: String
        @Option(help: "The address and port to listen on.")
        var listen = AddressArgument(SocketAddress(host: "127.0.0.1", port: 8443))
        @Option(help: ArgumentHelp("The https URL of a proxy that forwards to --listen.", valueName: "url"))
        var publicURL: String?
        @Option(
            help: ArgumentHelp(
                "The VAPID public key of the only server that may notify. [default: that of the subscription]", valueName: "key"))
        var vapid: VAPIDKeyArgument?
        @Flag(help: "Make the subscription, print the options that the node needs, and exit.")
        var prepare = false
        @Flag(help: "Make a new subscription. Messages for the old one are answered 410, so that servers remove it.")
        var renew = false
        @Option(help: ArgumentHelp("Exit after this number of notifications.", valueName: "n"))
        var count: Int?
        @Flag(help: "Print JSON.")
        var json = false

        func validate() throws {
            guard listen.address.port > 0 else { throw ValidationError("--listen needs a port, which the subscription names") }
            guard count ?? 1 > 0 else { throw ValidationError("--count must be at least 1") }
            let isAnyAddress = ["0.0.0.0", "::"].contains(listen.address.host)
            guard !isAnyAddress || publicURL != nil else {
                throw ValidationError("--listen needs the address by which push servers reach it, or --public-url")
            }
            // Nodes allow addresses, not names.
            guard IPAddress(host) != nil || publicURL != nil else {
                throw ValidationError("--listen needs an IP address in place of \(host), or --public-url")
            }
        }

        /// The host to listen on: localhost may resolve to another address than the one that the printed options allow.
        private var host: String { listen.address.host == "localhost" ? "127.0.0.1" : listen.address.host }

        /// The URL of the subscription, without its last component.
        private var base: String { publicURL ?? "https://\(listen.address)" }

        func execute() async throws {
            let folder = try ReceiverFolder(folder)
            defer { withExtendedLifetime(folder) {} }
            let subscription = try subscription(in: folder)
            let certificate = publicURL == nil ? try folder.certificate(for: hosts) : nil
            let listening = ReceiverEventLine.receiver(
                prepare ? "prepared" : "listening", origin: subscription.subscription.origin.description, file: folder.subscriptionFile,
                options: nodeOptions(folder), asJSON: json)
            if prepare { return Output.text(listening) }
            try await serve(PushInbox([subscription], removed: Set(folder.removed())), certificate: certificate, listening)
        }

        private func subscription(in folder: ReceiverFolder) throws -> ReceiverSubscription {
            let former = try folder.subscription(replacesDamaged: renew)
            if let former, !renew {
                guard former.isUnder(base) else {
                    throw CommandFailure(
                        .usage,
                        "\(folder.path) has a subscription for \(former.subscription.origin): listen there, or make one for \(base) with --renew"
                    )
                }
                guard vapid == nil || vapid?.key == former.vapidKey else {
                    throw CommandFailure(
                        .usage, "\(folder.path) has a subscription for another VAPID key: make one for this key with --renew")
                }
                return former
            }
            if renew, former == nil, vapid == nil { CommandFailure.report("warning: without --vapid any server may notify") }
            guard let made = ReceiverSubscription(base: base, vapidKey: vapid?.key ?? former?.vapidKey) else {
                throw CommandFailure(.usage, "\(base) can't be an endpoint: give --public-url an https URL without a query")
            }
            try folder.replace(former, by: made)
            return made
        }

        /// The names of the certificate.
        private var hosts: [String] {
            ["127.0.0.1", "::1"].contains(host) ? ["127.0.0.1", "::1", "localhost"] : [host]
        }

        private func nodeOptions(_ folder: ReceiverFolder) -> String {
            guard publicURL == nil else { return "" }
            return "--web-push-allow \(host) --web-push-ca \(folder.authorityFile)"
        }

        private func serve(
            _ inbox: PushInbox, certificate: (chain: [UInt8], key: [UInt8])?, _ listening: String
        ) async throws {
            // From here on, signals end the command gracefully.
            let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
            let (ends, end) = AsyncStream.makeStream(of: Void.self)
            // Requests whose lines are not printed when this stops are refused, and repeated later.
            let lines = LinePrinter()
            let printedCount = Atomic(0)
            let address = SocketAddress(host: host, port: listen.address.port)
            guard
                let server = PushReceiverServer(
                    inbox, host: address.host, port: address.port, certificate: certificate,
                    handle: { [json, limit = count] event in
                        switch event {
                        // Anyone can request any path, so these would flood the output.
                        case .refused(.unknownPath): break
                        case .refused(let refusal): try await lines.print(ReceiverEventLine.refused(refusal, asJSON: json))
                        case .received(let notification):
                            try await lines.print(ReceiverEventLine.notification(notification, at: Date(), asJSON: json))
                            if printedCount.add(1, ordering: .relaxed).newValue == limit { end.finish() }
                        }
                    })
            else { throw CommandFailure(.data, "the certificate in \(folder) can't be used: delete certificate.pem, and start again") }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    do {
                        try await server.run { _ in Output.text(listening) }
                    } catch  where !(error is CancellationError) {
                        let reason = ListenFailure.reason(error)
                        throw CommandFailure(.unavailable, "can't listen on \(address): \(reason) Choose another with --listen")
                    }
                }
                group.addTask {
                    for await _ in signals { return }
                }
                group.addTask {
                    for await _ in ends {}
                }
                try await group.next()
                lines.stop()
                // The server finishes the responses in progress.
                group.cancelAll()
                try await group.waitForAll()
            }
        }
    }
}

extension ReceiverSubscription {
    /// Whether the endpoint is directly under this URL.
    fileprivate func isUnder(_ base: String) -> Bool {
        subscription.endpoint == base + (base.hasSuffix("/") ? "" : "/") + token
    }
}

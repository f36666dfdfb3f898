import WakuCrypto
import ArgumentParser
import CurlClient
import Delivery
import Dispatch
import Foundation
import NodeAssembly

struct Demo: ReportingCommand {
    static let configuration = CommandConfiguration(
        abstract: "Demonstrates the node on this machine, without a network: registers, queries and notifies a phone.",
        discussion: """
            The demo generates keys and a temporary data folder, and starts the loopback relay, a fake gorush that prints what is posted to it, a node \
            and two clients. They communicate over sockets on free ports of 127.0.0.1. Each step is checked: the exit code is 0 only if all of them \
            followed the protocol.

            With --web-push there is no gorush: a desktop makes a Web Push subscription, and the node posts to it over TLS.
            """)

    @Flag(help: "Demonstrate a notification of a desktop by Web Push, without gorush.")
    var webPush = false

    func execute() async throws {
        let folder = NSTemporaryDirectory() + "waku-push-demo-" + UUID().uuidString
        guard mkdir(folder, 0o700) == 0 else { throw CommandFailure(.cannotCreate, "folder \(folder) can't be made") }
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let removal = Self.removeOnSignal(folder)
        defer { removal.forEach { $0.cancel() } }
        if webPush { return try await WebPushDemo.run(in: folder) }
        let gorush = GorushStandIn()
        try await gorush.running { url in
            let configuration = ServerConfiguration(identity: .generate(), dataPath: folder)
            let endpoint = GorushEndpoint(try GorushClient(client: CurlClient(), url: url))
            try await DemoStage.run(configuration, endpoint, receiver: "a fake gorush at \(url)") { stage in
                try await DemoScript(stage: stage, gorush: gorush).run()
            }
        }
    }

    /// Ends the process on SIGINT and SIGTERM, after removing the folder, in which the keys are.
    private static func removeOnSignal(_ folder: String) -> [any DispatchSourceSignal] {
        [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                try? FileManager.default.removeItem(atPath: folder)
                // Ends as without the handler, for shells that look at the cause.
                signal(number, SIG_DFL)
                kill(getpid(), number)
                // The first process of a container survives that.
                if getpid() == 1 { _exit(128 + number) }
            }
            source.activate()
            return source
        }
    }
}

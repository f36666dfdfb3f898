import ArgumentParser
import NodeAPI
import PushNode

extension Admin {
    struct Limits: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows the work that the limits of the running node refuse, and the greatest payers.",
            discussion: """
                STANDING is that of the payers: known (a push service accepted a notification for the device token), familiar or stranger. \
                MINUTE counts the last whole minute, TOTAL since the start. PAYER is a hash that changes daily. Limits are per node; \
                the values are options of serve.

                EXAMPLE
                  waku-push admin limits --data data
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions

        func execute() async throws {
            let found: AdminAPI.Limits = try await client().get("/limits")
            if admin.json { return try Output.json(found) }
            for part in found.protocols {
                if let attack = part.report.attack { Output.line("under attack: \(part.protocol): \(attack)") }
            }
            let refusals = found.protocols.flatMap { part in
                part.report.refusals.map { [part.protocol, $0.limit, $0.standing, String($0.lastMinute), String($0.total)] }
            }
            if refusals.isEmpty {
                Output.line("nothing was refused")
            } else {
                Output.table(["PROTOCOL", "LIMIT", "STANDING", "MINUTE", "TOTAL"], refusals)
            }
            let payers = found.protocols.flatMap { part in
                part.report.payers.map { [part.protocol, $0.name, $0.kind, $0.standing, String($0.work)] }
            }
            guard !payers.isEmpty else { return }
            Output.line()
            Output.table(["PROTOCOL", "PAYER", "KIND", "STANDING", "WORK TODAY"], payers)
        }
    }
}

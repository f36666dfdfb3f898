import NodeAssembly
import ArgumentParser
import Cluster
import Storage
import StorePostgreSQL

extension Admin {
    struct Nodes: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the nodes that share a PostgreSQL database: see serve's --cluster.",
            discussion: """
                A node that has not renewed its lease for 5 s is down; its devices are reassigned. If no other node runs, it is listed as not renewed, \
                and its partitions have no owner. Each device belongs to one of 256 partitions, and \
                each partition to one node. One of the nodes does maintenance for all. A node that has stopped is listed for an hour.

                EXAMPLES
                  waku-push admin nodes --store postgresql://waku@db/waku
                  waku-push admin nodes --store postgresql://waku@db/waku --json
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions

        func execute() async throws {
            guard case .postgreSQL(let address) = try await location() else {
                throw CommandFailure(.usage, "one node alone has its database in the data folder: give --store to list several")
            }
            // The tables must exist, with this version's schema.
            try await openStore().close()
            let database = ClusterDatabase(address, configuration: ClusterConfiguration(), outbox: ClusterNode.outbox)
            defer { database.close() }
            let overview = try database.overview()
            let nodes = overview.latestNodes.map { node in
                NodeLine(
                    name: node.name, id: node.id.description, state: node.stateName, version: node.version,
                    secondsSinceRenewal: Int(node.secondsSinceRenewal), partitions: node.partitionCount, doesMaintenance: node.isMaintainer)
            }
            if admin.json { return try Output.json(Overview(nodes: nodes, partitionsWithoutOwner: overview.unownedPartitionCount)) }
            Output.table(
                ["NAME", "ID", "STATE", "LAST RENEWAL", "PARTITIONS", "MAINTENANCE", "VERSION"],
                nodes.map {
                    [
                        $0.name, $0.id, $0.state, "\($0.secondsSinceRenewal) s ago", "\($0.partitions)",
                        $0.doesMaintenance ? "yes" : "-", $0.version,
                    ]
                })
            if overview.unownedPartitionCount > 0 { Output.line("\(overview.unownedPartitionCount) partitions have no owner") }
            if !overview.hasMaintainer { Output.line("no node does maintenance") }
        }

        private struct Overview: Encodable {
            let nodes: [NodeLine]
            let partitionsWithoutOwner: Int
        }

        private struct NodeLine: Encodable {
            let name, id, state, version: String
            let secondsSinceRenewal, partitions: Int
            let doesMaintenance: Bool
        }
    }
}
